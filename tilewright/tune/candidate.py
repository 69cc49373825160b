"""Candidates and what measuring one gave.

A candidate is the sequence of decisions that its space asked for, by name. It says nothing of how
the program is made: `Space.text` spells it as the space understands it, a trace for schedules.
"""

from __future__ import annotations

import math
from statistics import median
from typing import TypeAlias

from tilewright.core.node import node

Value: TypeAlias = "bool | int | float | str | tuple[Value, ...] | None"


@node
class Candidate:
    """Decisions in the order in which they were made, `(name, value)` each."""

    decisions: tuple[tuple[str, Value], ...]

    def __str__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.decisions)


@node
class Result:
    """A measured candidate: its times in seconds, or why there are none."""

    candidate: Candidate
    times: tuple[float, ...] = ()
    failure: str = ""

    @property
    def seconds(self) -> float:
        """The median time; infinite for a candidate that failed."""
        return median(self.times) if self.times and not self.failure else math.inf
