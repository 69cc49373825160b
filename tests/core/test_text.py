from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.core.errors import ParseError
from tilewright.core.text import Cursor, tokenize


def test_kinds_and_positions() -> None:
    tokens = tokenize('for i.0 in\n  %"a b" += -1.5e3 // 7 # rest\n"s\\"t" @f.1 >=')
    assert [(t.kind, t.text) for t in tokens] == [
        ("name", "for"),
        ("name", "i.0"),
        ("name", "in"),
        ("ref", '%"a b"'),
        ("punct", "+="),
        ("punct", "-"),
        ("float", "1.5e3"),
        ("punct", "//"),
        ("int", "7"),
        ("string", '"s\\"t"'),
        ("ref", "@f.1"),
        ("punct", ">="),
        ("end", ""),
    ]
    assert (tokens[3].line, tokens[3].column) == (2, 3)
    assert (tokens[9].line, tokens[9].column) == (3, 1)


def test_a_strange_character_has_a_place() -> None:
    with pytest.raises(ParseError, match=r"parse.character.*'\$'") as error:
        tokenize("a\n  $", "f.txt")
    assert str(error.value.loc) == "f.txt:2:3"


def test_cursor() -> None:
    c = Cursor('f("x") y')
    assert c.take("name") == "f"
    assert c.accept("(")
    assert not c.peek('"x"')  # a string never matches
    assert c.peek(")", 1)
    assert c.take("string") == '"x"'
    c.expect(")")
    assert c.peek("y")
    assert not c.peek("y", 9)
    with pytest.raises(ParseError, match=r"expected 'z', found 'y'"):
        c.expect("z")
    with pytest.raises(ParseError, match=r"expected a int"):
        c.take("int")
    c.take("name")
    with pytest.raises(ParseError, match="the end"):
        c.expect("z")


@given(st.text(max_size=40))
def test_any_text_is_tokens_or_an_error(text: str) -> None:
    try:
        tokens = tokenize(text)
    except ParseError:
        return
    assert tokens[-1].kind == "end"
    lines = text.split("\n")
    for t in tokens[:-1]:
        assert lines[t.line - 1][t.column - 1 :].startswith(t.text)
