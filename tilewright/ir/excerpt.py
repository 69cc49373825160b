"""A line of IR text with marks under what is wrong with it, for the notes of an error.

5 |   for y.1 in serial(8) {
  |       ^^^
"""

from __future__ import annotations

import re
from collections.abc import Sequence


def excerpt(lines: Sequence[str], candidates: Sequence[int], focus: str = "") -> tuple[str, ...]:
    """Two lines: the first of the `candidates` (from 0) that has `focus`, and marks under it.

    Where none has it, the first candidate is marked from end to end.
    """
    number = next((n for n in candidates if _find_word(focus, lines[n]) >= 0), candidates[0])
    text = lines[number]
    at = _find_word(focus, text)
    if at < 0:
        at, focus = len(text) - len(text.lstrip()), text.strip()
    margin = f"{number + 1:>2}"
    return f"{margin} | {text}", f"{' ' * len(margin)} | {' ' * at}{'^' * len(focus)}"


def _find_word(focus: str, line: str) -> int:
    """Where `focus` stands in `line` and is no part of a longer name; -1 if nowhere."""
    pattern = re.escape(focus)
    if re.match(r"\w", focus):
        pattern = rf"(?<![\w.]){pattern}"
    if re.search(r"\w$", focus):
        pattern = rf"{pattern}(?![\w.])"
    found = re.search(pattern, line) if focus else None
    return -1 if found is None else found.start()
