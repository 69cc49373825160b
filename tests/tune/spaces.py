"""Spaces with a known optimum that the tests of the tuner search."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tilewright.tune.candidate import Candidate, Result, Value
from tilewright.tune.space.knobs import KnobSpace

# 8 ** 5 = 32,768 combinations, of which those with x0 + x1 == 2 do not exist.
VALUES = tuple(2**power for power in range(8))
KNOBS = {f"x{number}": VALUES for number in range(5)}
BEST = (16, 32, 4, 8, 64)
FAILING = 128  # of x4: such candidates fail when measured


def smooth() -> KnobSpace:
    """A space whose times rise evenly with the distance from `BEST`."""
    return KnobSpace(KNOBS, lambda chosen: chosen["x0"] != 1 or chosen["x1"] != 1, "smooth")


def smooth_time(values: Sequence[Value]) -> float:
    """1 ms for `BEST`, more for others."""
    steps = [math.log2(a) - math.log2(b) for a, b in zip(values, BEST, strict=True)]  # type: ignore[arg-type]
    coupled = abs(steps[0] + steps[1])
    return 1e-3 * (1 + 0.05 * sum(step**2 for step in steps) + 0.05 * coupled)


def measure(candidates: Sequence[Candidate]) -> list[Result]:
    """Measure candidates of `smooth`."""
    found = []
    for candidate in candidates:
        values = [value for _, value in candidate.decisions]
        if values[4] == FAILING:
            found.append(Result(candidate, failure="runtime"))
        else:
            found.append(Result(candidate, (smooth_time(values),)))
    return found
