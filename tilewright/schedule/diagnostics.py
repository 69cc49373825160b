"""Refused schedule steps as errors that show the offending statement.

ScheduleError[reorder.not-nested]: loops "i" and "k" are not perfectly nested
  in reorder("i", "k"), trace step 2
   5 |   for k in serial(8) {
     |       ^
"""

from __future__ import annotations

from tilewright.core.errors import ScheduleError
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, For, Func, Stmt
from tilewright.ir.loop.text import stmt_excerpt


@node
class Mark:
    """A place in a function, rendered only when an error is printed: a search refuses thousands."""

    func: Func
    stmt: Stmt
    focus: str

    def __str__(self) -> str:
        return "\n  ".join(stmt_excerpt(self.func, self.stmt, self.focus))


def refuse(
    func: Func, code: str, message: str, at: Stmt | None = None, *, focus: str = "", help: str = ""
) -> ScheduleError:
    """The error to raise: `at` is marked in the function's text, under its name or `focus`."""
    notes = () if at is None else (Mark(func, at, focus or _name(at)),)
    return ScheduleError(code, message, loc=func.loc, notes=notes, help=help)


def _name(stmt: Stmt) -> str:
    match stmt:
        case For(name):
            return name
        case Block(name):
            return f'"{name}"'
    return ""
