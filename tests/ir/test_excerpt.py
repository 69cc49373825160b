from __future__ import annotations

from tilewright.ir.excerpt import excerpt

LINES = ["func {", "  for vi.1 in serial(vi) {"]


def test_marks_stand_under_the_word():
    assert excerpt(LINES, [1], "vi") == (
        " 2 |   for vi.1 in serial(vi) {",
        "   |                      ^^",
    )


def test_the_whole_line_is_marked_where_the_word_is_absent():
    assert excerpt(LINES, [0], "x")[1] == "   | ^^^^^^"
    assert excerpt(LINES, [0])[1] == "   | ^^^^^^"


def test_words_are_whole():
    lines = ["vi + i.0 + i", "BA[0] + A[1]"]
    assert excerpt(lines, [0], "i")[1] == "   |            ^"
    assert excerpt(lines, [1], "A[")[1] == "   |         ^^"


def test_the_first_line_that_has_the_word_is_shown():
    assert excerpt(LINES, [0, 1], "serial") == (
        " 2 |   for vi.1 in serial(vi) {",
        "   |               ^^^^^^",
    )
