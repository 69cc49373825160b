from __future__ import annotations

import numpy as np

from tests.finalize.math.accuracy import arguments, check
from tests.for_each import for_each
from tilewright.core.dtypes import F32, F64, DType

CASES = {
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
}
RANGES = [(-1.0, 1.0), (-10.0, 10.0), (-90.0, 90.0), (-712.0, 712.0), (1.0, 1.01), (-0.01, 0.01)]
LIMIT = {F32: 2.0, F64: 4.0}


@for_each("dtype", [F32, F64], ids=str)
@for_each("fn", CASES)
def test_accuracy_over_the_whole_range(fn: str, dtype: DType) -> None:
    check(fn, dtype, CASES[fn], LIMIT[dtype], arguments(dtype, *RANGES))


@for_each("fn", ["sinh", "cosh"])
def test_finite_beyond_the_range_of_exp(fn: str) -> None:
    check(fn, F32, CASES[fn], 2.0, np.linspace(88.7, 89.5, 2000).astype(np.float32))
    check(fn, F64, CASES[fn], 4.0, np.linspace(709.7, 710.6, 2000))
