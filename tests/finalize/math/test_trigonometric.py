from __future__ import annotations

import numpy as np

from tests.finalize.math.accuracy import arguments, check
from tests.for_each import for_each
from tilewright.core.dtypes import F32

CASES = {"sin": np.sin, "cos": np.cos, "tan": np.tan}
RANGES = [(-1.0, 1.0), (-10.0, 10.0), (-1e4, 1e4), (-1e10, 1e10), (1e20, 1e24), (1e35, 3e38)]


@for_each("fn", CASES)
def test_accuracy_over_the_whole_range(fn: str) -> None:
    check(fn, F32, CASES[fn], 0.6, arguments(F32, *RANGES))


@for_each("fn", CASES)
def test_near_multiples_of_a_quarter_turn(fn: str) -> None:
    turns = np.concatenate([np.arange(1, 50_000), 2.0 ** np.arange(16, 127)])
    x = (turns * np.pi / 2).astype(np.float32)
    near = [x, np.nextafter(x, np.float32(0)), np.nextafter(x, np.float32(np.inf))]
    check(fn, F32, CASES[fn], 0.6, np.concatenate(near))


@for_each("fn", CASES)
def test_where_the_constants_change(fn: str) -> None:
    ends = np.float32(2.0) ** np.array([51, 77, 103], np.float32)
    x = np.concatenate([ends * np.float32(f) for f in np.linspace(0.99, 1.01, 2001)])
    check(fn, F32, CASES[fn], 0.6, x)


def test_the_float_closest_to_a_multiple_of_a_quarter_turn() -> None:
    worst = np.array([16367173 * 2.0**72], np.float32)  # its rest is 2**-29.2
    for fn, oracle in CASES.items():
        check(fn, F32, oracle, 0.6, worst)
