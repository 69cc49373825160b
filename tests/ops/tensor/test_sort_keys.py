from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.arith.expr import Load, Var, const
from tilewright.core.dtypes import (
    BF16,
    F8E4M3FN,
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    U8,
    U32,
    U64,
    DType,
)
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Buffer, For, Func, Store
from tilewright.ops.tensor.sort_keys import SortKeys


def _keys(values: np.ndarray, dtype: DType, largest: bool) -> list[int]:
    keys, count, i = SortKeys(dtype, largest), const(len(values)), Var("i")
    store = Store("y", (i,), keys.of(Load("x", (i,), dtype)))
    params = (Buffer("x", dtype, (count,)), Buffer("y", keys.dtype, (count,)))
    found = np.zeros(len(values), keys.dtype.numpy)
    func = Func("f", params, ("y",), For("i", count, "serial", store))
    run_func(func, {"x": values, "y": found})
    assert (found >= keys.least).all()
    assert (found < -keys.least).all()
    return found.tolist()


@for_each("dtype", [F16, BF16, F32, F64, F8E4M3FN])
def test_floats(dtype: DType) -> None:
    wide = [-np.inf, -3e38, -7.0, -2e-7, -0.0, 0.0, 1e-6, 3.5, 440.0, np.inf, np.nan]
    if dtype == F8E4M3FN:
        wide = [-440.0, -7.0, -0.0, 0.0, 3.5, 440.0, np.nan]
    with np.errstate(over="ignore"):
        values = np.array([*wide, -wide[-1]]).astype(dtype.numpy)
    keys = _keys(values, dtype, True)
    *numbers, nan, other_nan = keys
    assert nan == other_nan > max(numbers)
    floats = values[:-2].astype(np.float64)
    for a, one in zip(keys, floats, strict=False):
        for b, two in zip(keys, floats, strict=False):
            assert (a < b) == (one < two)
    _check_least(values, dtype, keys)


@for_each("dtype", [I8, U8, I32, U32, I64, U64])
def test_integers(dtype: DType) -> None:
    ends = np.iinfo(dtype.numpy)
    values = np.array([ends.min, ends.min + 1, 5, ends.max - 1, ends.max], dtype.numpy)
    keys = _keys(values, dtype, True)
    assert keys == sorted(set(keys))
    _check_least(values, dtype, keys)


def _check_least(values: np.ndarray, dtype: DType, keys: list[int]) -> None:
    """The least comes first by complements; where there is room, no key is the least possible."""
    others = _keys(values, dtype, False)
    assert others == [-1 - key for key in keys]
    for largest, found in ((True, keys), (False, others)):
        kind = SortKeys(dtype, largest)
        assert kind.has_free_least == (kind.least not in found)
