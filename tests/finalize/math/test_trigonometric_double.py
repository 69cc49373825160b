from __future__ import annotations

import numpy as np

from tests.finalize.math.accuracy import arguments, check
from tests.for_each import for_each
from tilewright.core.dtypes import F64

CASES = {"sin": np.sin, "cos": np.cos, "tan": np.tan}
RANGES = [(-1.0, 1.0), (-10.0, 10.0), (-1e6, 1e6), (-1e13, 1e13), (1e15, 1e20), (1e300, 1.7e308)]


@for_each("fn", CASES)
def test_accuracy_over_the_whole_range(fn: str) -> None:
    check(fn, F64, CASES[fn], 4.0, arguments(F64, *RANGES))


@for_each("fn", CASES)
def test_near_multiples_of_a_quarter_turn(fn: str) -> None:
    turns = np.concatenate([np.arange(1, 50_000), 2.0 ** np.arange(16, 1000)])
    check(fn, F64, CASES[fn], 4.0, turns * (np.pi / 2))


@for_each("fn", CASES)
def test_where_the_reduction_changes(fn: str) -> None:
    check(fn, F64, CASES[fn], 4.0, 2.0**45 * np.linspace(0.999, 1.001, 20_001))
