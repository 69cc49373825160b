from __future__ import annotations

import numpy as np

from tests.finalize.math.accuracy import all_magnitudes, machine, special_values
from tests.finalize.math.jit_expression import jit
from tests.for_each import for_each
from tilewright.arith.expr import Call, Var
from tilewright.core.dtypes import DTYPES, F32, F64, DType
from tilewright.finalize.math.expand import expand_calls


@for_each("dtype", [F32, F64], ids=str)
def test_isinf(dtype: DType) -> None:
    x = np.concatenate([special_values(dtype), all_magnitudes(dtype)])
    np.testing.assert_array_equal(machine("isinf", dtype)(x), np.isinf(x))


@for_each("dtype", [F32, F64], ids=str)
def test_sign(dtype: DType) -> None:
    x = np.concatenate([special_values(dtype), all_magnitudes(dtype)])
    with np.errstate(invalid="ignore"):
        found = machine("sign", dtype)(x)
        np.testing.assert_array_equal(found, np.sign(x))
    assert not np.signbit(found[x == 0]).any()


@for_each("name", ["i8", "i32", "i64", "u8", "u32", "u64"])
def test_sign_of_integers(name: str) -> None:
    dtype = DTYPES[name]
    info = np.iinfo(dtype.numpy)
    x = np.array([info.min, info.min + 1, 0, 1, 2, info.max], dtype.numpy)
    e = expand_calls(Call("sign", (Var("x", dtype),), dtype))
    np.testing.assert_array_equal(jit(e, [("x", dtype)])(x), np.sign(x))
