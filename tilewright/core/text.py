"""The lexer that all text IRs share, and a token cursor with line-and-column errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

from tilewright.core.errors import Loc, ParseError
from tilewright.core.node import node

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+|\#[^\n]*)
      | (?P<newline>\n)
      | (?P<string>"(?:[^"\\\n]|\\.)*")
      | (?P<float>\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)
      | (?P<int>\d+)
      | (?P<name>[A-Za-z_][A-Za-z0-9_.]*)
      | (?P<ref>[@%](?:[A-Za-z0-9_.]+|"(?:[^"\\\n]|\\.)*"))
      | (?P<punct>->|\+=|<<|>>|<=|>=|==|!=|//|[-+*/%<>=(){}\[\],:;?&|^!~])""",
    re.VERBOSE,
)


P = ParamSpec("P")
R = TypeVar("R")


@node
class Token:
    """One lexeme; `kind` is `string float int name ref punct end`."""

    kind: str
    text: str
    line: int
    column: int


def tokenize(source: str, file: str = "") -> list[Token]:
    """Split `source` into tokens, the last of kind `end`."""
    tokens, line, start, at = [], 1, 0, 0
    while at < len(source):
        match = _TOKEN.match(source, at)
        if match is None:
            raise ParseError(
                "parse.character",
                f"unexpected character {source[at]!r}",
                loc=Loc(file, "", line, at - start + 1),
            )
        kind = match.lastgroup or ""
        if kind == "newline":
            line, start = line + 1, match.end()
        elif kind != "space":
            tokens.append(Token(kind, match.group(), line, at - start + 1))
        at = match.end()
    tokens.append(Token("end", "", line, at - start + 1))
    return tokens


def refuses_deep_text(parse: Callable[P, R]) -> Callable[P, R]:
    """Make text that is nested beyond Python's stack an error of the text."""

    @wraps(parse)
    def parsed(*args: P.args, **named: P.kwargs) -> R:
        try:
            return parse(*args, **named)
        except RecursionError:
            raise ParseError("parse.nesting", "the text is nested too deeply") from None

    return parsed


class Cursor:
    """Reads tokens in order; every parser is a set of functions over one of these."""

    def __init__(self, source: str, file: str = "") -> None:
        self.tokens = tokenize(source, file)
        self.file = file
        self.position = 0

    @property
    def now(self) -> Token:
        """The token not yet consumed."""
        return self.tokens[self.position]

    def peek(self, text: str, ahead: int = 0) -> bool:
        """Whether the token `ahead` places on has this text (strings never match)."""
        token = self.tokens[min(self.position + ahead, len(self.tokens) - 1)]
        return token.text == text and token.kind != "string"

    def accept(self, text: str) -> bool:
        """Consume the token if it has this text."""
        if self.peek(text):
            self.position += 1
            return True
        return False

    def expect(self, text: str) -> Token:
        """Consume a token that must have this text."""
        if not self.peek(text):
            self.fail(f"expected {text!r}, found {self.now.text or 'the end'!r}")
        self.position += 1
        return self.tokens[self.position - 1]

    def take(self, kind: str) -> str:
        """Consume a token of this kind and return its text."""
        if self.now.kind != kind:
            self.fail(f"expected a {kind}, found {self.now.text or 'the end'!r}")
        self.position += 1
        return self.tokens[self.position - 1].text

    def fail(self, message: str) -> NoReturn:
        """Raise a ParseError at the current token."""
        raise ParseError(
            "parse.syntax", message, loc=Loc(self.file, "", self.now.line, self.now.column)
        )
