from __future__ import annotations

from tilewright.ir.excerpt import find_word, mark

LINES = ["func {", "  for vi.1 in serial(vi) {"]


def test_marks_stand_under_the_word():
    assert mark(LINES, 1, "vi") == (
        " 2 |   for vi.1 in serial(vi) {",
        "   |                      ^^",
    )


def test_the_whole_line_is_marked_where_the_word_is_absent():
    assert mark(LINES, 0, "x")[1] == "   | ^^^^^^"
    assert mark(LINES, 0)[1] == "   | ^^^^^^"


def test_words_are_whole():
    assert find_word("i", "vi + i.0 + i") == 11
    assert find_word("A[", "BA[0] + A[1]") == 8
    assert find_word("", "anything") == -1
