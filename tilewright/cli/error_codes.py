"""Every error code of the compiler, found in its own source: what is raised, and what it says.

Codes are written where errors are raised and nowhere else, so that they cannot go out of date.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import tilewright
from tilewright.core import errors

# What makes an error, where its code stands among the arguments, and the class it gives.
MAKERS: dict[str, tuple[int, str]] = {
    **{name: (0, name) for name in vars(errors) if name.endswith("Error") and name != "Error"},
    "Fault": (0, "VerifyError"),
    "refuse": (1, "ScheduleError"),
}
# Most files raise no errors, and parsing them would take longest.
_MAKES = re.compile(rf"\b({'|'.join(MAKERS)})\(")
_CODE = re.compile(r"[\w{}-]+\.[\w{}.-]+")


class ErrorCode(NamedTuple):
    """One code: the class that carries it, its message and help, `{...}` being what varies."""

    code: str
    kind: str
    message: str
    help: str


def error_classes() -> list[tuple[str, str]]:
    """The classes and what each is for."""
    return [
        (name, (thing.__doc__ or "").partition("\n")[0])
        for name, thing in vars(errors).items()
        if isinstance(thing, type) and name.endswith("Error")
    ]


@cache
def error_codes() -> tuple[ErrorCode, ...]:
    """All codes in alphabetical order, each once."""
    root = Path(tilewright.__file__).parent
    found: dict[str, ErrorCode] = {}
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        if not _MAKES.search(text):
            continue
        for row in _codes_in(ast.parse(text)):
            first = found.setdefault(row.code, row)
            found[row.code] = first._replace(
                message=first.message or row.message, help=first.help or row.help
            )
    return tuple(found[code] for code in sorted(found))


def _codes_in(tree: ast.AST) -> Iterator[ErrorCode]:
    variables = _variables(tree)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    for call in sorted(calls, key=lambda call: call.lineno):
        name = call.func.attr if isinstance(call.func, ast.Attribute) else _name(call.func)
        if name not in MAKERS:
            continue
        position, kind = MAKERS[name]
        texts = [_text(arg, variables) for arg in call.args[position : position + 2]]
        if texts and _CODE.fullmatch(texts[0]):
            help = (_text(k.value, variables) for k in call.keywords if k.arg == "help")
            message = texts[1] if len(texts) > 1 else ""
            yield ErrorCode(texts[0], kind, message, next(help, ""))


def _variables(tree: ast.AST) -> list[tuple[int, str, ast.expr]]:
    """What is assigned to plain names, with the line, last first."""
    found = [
        (node.lineno, _name(node.targets[0]), node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
    ]
    return sorted(found, key=lambda row: -row[0])


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr, variables: list[tuple[int, str, ast.expr]]) -> str:
    """A string with `{expression}` where it is filled in; empty where it comes from elsewhere."""
    match node:
        case ast.Constant():
            return str(node.value)
        case ast.JoinedStr():
            return "".join(_text(part, variables) for part in node.values)
        case ast.FormattedValue():
            return f"{{{ast.unparse(node.value)}}}"
        case ast.Name():
            before = (v for line, name, v in variables if name == node.id and line < node.lineno)
            value = next(before, None)
            return "" if value is None or isinstance(value, ast.Name) else _text(value, variables)
    return ""
