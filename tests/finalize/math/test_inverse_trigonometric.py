from __future__ import annotations

import numpy as np

from tests.finalize.math.accuracy import arguments, check, special_values
from tests.for_each import for_each
from tilewright.core.dtypes import F32, F64, DType

CASES = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan}
RANGES = [(-1.0, 1.0), (0.53, 0.58), (0.8, 0.85), (0.99, 1.01), (-10.0, 10.0)]
LIMIT = {F32: 2.0, F64: 4.0}


@for_each("dtype", [F32, F64], ids=str)
@for_each("fn", CASES)
def test_accuracy_over_the_whole_range(fn: str, dtype: DType) -> None:
    check(fn, dtype, CASES[fn], LIMIT[dtype], arguments(dtype, *RANGES))


@for_each("dtype", [F32, F64], ids=str)
def test_atan2_of_special_values(dtype: DType) -> None:
    y, x = (g.ravel() for g in np.meshgrid(special_values(dtype), special_values(dtype)))
    check("atan2", dtype, np.arctan2, 2.0, y, x)


@for_each("dtype", [F32, F64], ids=str)
@for_each("scale", [1.0, 1e-3, 1e3])
def test_atan2_all_around(dtype: DType, scale: float) -> None:
    rng = np.random.default_rng(0)
    y, x = rng.uniform(-1, 1, 50_000) * scale, rng.uniform(-1, 1, 50_000)
    check("atan2", dtype, np.arctan2, 2.0, y.astype(dtype.numpy), x.astype(dtype.numpy))
