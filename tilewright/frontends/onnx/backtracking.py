"""Decisions that only the rest of a model can judge: tried in turn until one works.

Branches of an `If` may give tensors of different ranks, as in "squeeze the last dimension if it is
1". What follows has a meaning for one of them only, so one is chosen, and checked when the model
runs; where the model then makes no sense, the other one is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tilewright.core.errors import Error

T = TypeVar("T")
MAX_ATTEMPTS = 64


class Choices:
    """Yes or no to each question in the order in which they come up, yes first."""

    def __init__(self) -> None:
        self._taken: list[bool] = []
        self._asked = 0

    def take(self) -> bool:
        """The answer to the next question."""
        if self._asked == len(self._taken):
            self._taken.append(True)
        self._asked += 1
        return self._taken[self._asked - 1]

    def advance(self) -> bool:
        """Start again with the last answer changed that can be; false if there is none."""
        while self._taken and not self._taken[-1]:
            self._taken.pop()
        if not self._taken:
            return False
        self._taken[-1] = False
        self._asked = 0
        return True


def first_working(attempt: Callable[[Choices], T]) -> T:
    """What `attempt` gives with the first answers under which it does not fail.

    If it always fails, the error is that of the first attempt.
    """
    choices = Choices()
    first: Error | None = None
    for _ in range(MAX_ATTEMPTS):
        try:
            return attempt(choices)
        except Error as error:
            first = first or error
            if not choices.advance():
                break
    assert first is not None
    raise first
