from __future__ import annotations

import numpy as np

from tests.finalize.math.accuracy import arguments, check
from tests.for_each import for_each
from tilewright.core.dtypes import F32, F64, DType

CASES = {"log": np.log, "log2": np.log2, "log1p": np.log1p}
RANGES = [(0.0, 1e-38), (0.0, 2.0), (0.6, 0.7), (1.3, 1.4), (0.999, 1.001), (-1.0, 1.0), (0.0, 1e6)]


@for_each("dtype", [F32, F64], ids=str)
@for_each("fn", CASES)
def test_accuracy_over_the_whole_range(fn: str, dtype: DType) -> None:
    check(fn, dtype, CASES[fn], 2.0, arguments(dtype, *RANGES))


@for_each("fn", CASES)
def test_close_to_the_zero_of_the_function(fn: str) -> None:
    distance = np.exp2(np.linspace(-23, -1, 20_000))
    x = np.concatenate([distance, -distance]) + (0.0 if fn == "log1p" else 1.0)
    check(fn, F32, CASES[fn], 2.0, x.astype(np.float32))
