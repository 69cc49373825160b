"""Backtracking over decisions that only the rest of a model can confirm.

Branches of an `If` may give tensors of different ranks, as in "squeeze the last dimension if it is
1". The nodes after it type-check with one of them only. So the importer takes one branch and adds a
check for run time; if the import then fails, it starts again with the other branch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tilewright.core.errors import Error

T = TypeVar("T")
MAX_ATTEMPTS = 64
"""Imports of one model at most; each decision would double their number."""


class Backtracker:
    """A depth-first search over yes-or-no decisions, in the order in which they come up."""

    def __init__(self) -> None:
        self._taken: list[bool] = []
        self._asked = 0

    def take(self) -> bool:
        """The answer to the next decision; yes is tried first."""
        if self._asked == len(self._taken):
            self._taken.append(True)
        self._asked += 1
        return self._taken[self._asked - 1]

    def advance(self) -> bool:
        """Restart with the last yes changed to no; false if all answers have been tried."""
        while self._taken and not self._taken[-1]:
            self._taken.pop()
        if not self._taken:
            return False
        self._taken[-1] = False
        self._asked = 0
        return True


def first_success(attempt: Callable[[Backtracker], T]) -> T:
    """The result of `attempt` with the first answers under which it succeeds.

    If all attempts fail, the error of the first one is raised.
    """
    backtracker = Backtracker()
    first: Error | None = None
    for _ in range(MAX_ATTEMPTS):
        try:
            return attempt(backtracker)
        except Error as error:
            first = first or error
            if not backtracker.advance():
                break
    assert first is not None
    raise first
