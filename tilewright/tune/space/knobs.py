"""Spaces of independent knobs, as templates have: a list of values for each, and a condition.

KnobSpace({"tile": (1, 2, 4, 8), "unroll": (1, 2, 4)}, lambda k: k["unroll"] <= k["tile"])
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tilewright.tune.candidate import Candidate, Value
from tilewright.tune.space.space import Choose, Illegal, Site, Space


class KnobSpace(Space):
    """All combinations of values of knobs that meet a condition."""

    def __init__(
        self,
        knobs: Mapping[str, Sequence[Value]],
        condition: Callable[[Mapping[str, Value]], bool] = lambda chosen: True,
        name: str = "knobs",
    ) -> None:
        self.name = name
        self.knobs = {knob: tuple(values) for knob, values in knobs.items()}
        self._condition = condition

    def build(self, choose: Choose) -> None:
        """Ask for each knob in order."""
        chosen = {knob: choose(Site(knob, values)) for knob, values in self.knobs.items()}
        if not self._condition(chosen):
            raise Illegal(self.name)

    def features(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """The values of the knobs and, where they are positive numbers, the logarithms."""
        return knob_features(self.knobs, candidates)


def knob_features(
    knobs: Mapping[str, Sequence[Value]], candidates: Sequence[Candidate]
) -> np.ndarray:
    """One column a knob (its value, or where it stands among the values), one for a logarithm."""
    columns: list[list[float]] = []
    chosen = [dict(candidate.decisions) for candidate in candidates]
    for knob, values in knobs.items():
        numbers = _numbers(values)
        columns.append([numbers[row.get(knob)] for row in chosen])
        if min(numbers.values()) > 0:
            columns.append([math.log2(number) for number in columns[-1]])
    return np.array(columns, dtype=np.float64).reshape(len(columns), len(candidates)).T


def _numbers(values: Sequence[Value]) -> dict[Value, float]:
    if all(isinstance(value, int | float) for value in values):
        return {value: float(value) for value in values}  # type: ignore[arg-type]
    return {value: float(place) for place, value in enumerate(values)}
