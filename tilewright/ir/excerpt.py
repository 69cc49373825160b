"""A line of IR text with marks under what is wrong with it, for the notes of an error.

5 |   for y.1 in serial(8) {
  |       ^^^
"""

from __future__ import annotations

import re
from collections.abc import Sequence


def mark(lines: Sequence[str], number: int, focus: str = "") -> tuple[str, ...]:
    """Line `number` (from 0) and marks under `focus`, or under all of it where that is absent."""
    text = lines[number]
    at = find_word(focus, text)
    if at < 0:
        at, focus = len(text) - len(text.lstrip()), text.strip()
    margin = f"{number + 1:>2}"
    return f"{margin} | {text}", f"{' ' * len(margin)} | {' ' * at}{'^' * len(focus)}"


def find_word(focus: str, line: str) -> int:
    """Where `focus` stands in `line` and is no part of a longer name; -1 if nowhere."""
    pattern = re.escape(focus)
    if re.match(r"\w", focus):
        pattern = rf"(?<![\w.]){pattern}"
    if re.search(r"\w$", focus):
        pattern = rf"{pattern}(?![\w.])"
    found = re.search(pattern, line) if focus else None
    return -1 if found is None else found.start()
