"""Showing a statement in its function's text, for error messages.

5 |   for y.1 in serial(8) {
  |       ^^^
"""

from __future__ import annotations

from tilewright.ir.excerpt import find_word, mark
from tilewright.ir.loop.nodes import Func, Stmt
from tilewright.ir.loop.text import print_lines


def excerpt(func: Func, stmt: Stmt | None, focus: str = "") -> tuple[str, ...]:
    """Two lines: the line of `stmt` (the very object) and marks under `focus`, or under it all.

    `None` stands for the function's head. Among the lines of a statement the first that contains
    `focus` is shown.
    """
    lines = print_lines(func)
    mine = [n for n, (_, owner) in enumerate(lines) if owner is stmt] or [0]
    number = next((n for n in mine if find_word(focus, lines[n][0]) >= 0), mine[0])
    return mark([text for text, _ in lines], number, focus)
