from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import Var, as_int
from tilewright.core.dtypes import F32, I8, I32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import TensorType, tensor
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(8)


@for_each(
    ("x", "w"),
    [
        ((3, 4), (4, 5)),
        ((1, 1), (1, 1)),
        ((2, 3, 4), (4, 5)),
        ((3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((0, 4), (4, 3)),
        ((3, 0), (0, 2)),
    ],
)
@for_each("dtype", [np.float32, np.float64, np.int32, np.uint64])
def test_matmul(x: tuple[int, ...], w: tuple[int, ...], dtype: type) -> None:
    a, b = (RNG.uniform(0, 20, s).astype(dtype) for s in (x, w))
    np.testing.assert_allclose(run_op("matmul", a, b), a @ b, rtol=1e-5, atol=1e-5)


def test_symbolic_sizes() -> None:
    a, b = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((4, 5))
    found = run_op("matmul", a, b, dims=[("B", "M", "K"), ("K", "N")])
    np.testing.assert_allclose(found, a @ b)


@for_each("dtype", [np.float16, ml_dtypes.bfloat16])
def test_narrow_floats_are_summed_wide(dtype: type) -> None:
    found = run_op("matmul", np.ones((1, 4096), dtype), np.ones((4096, 1), dtype))
    assert float(found[0, 0]) == 4096


@for_each("x_type", [np.int8, np.uint8])
@for_each("w_type", [np.int8, np.uint8])
def test_matmul_integer(x_type: type, w_type: type) -> None:
    x = RNG.integers(0, 256, (3, 50)).astype(np.uint8).view(x_type)
    w = RNG.integers(0, 256, (50, 2)).astype(np.uint8).view(w_type)
    expected = x.astype(np.int32) @ w.astype(np.int32)
    np.testing.assert_array_equal(run_op("matmul_i32acc", x, w), expected)


def test_infinities_and_nan() -> None:
    x = np.array([[np.inf, 1], [0, np.nan]], np.float32)
    found = run_op("matmul", x, np.eye(2, dtype=np.float32))
    np.testing.assert_array_equal(found, [[np.inf, np.nan], [np.nan, np.nan]])


def test_type_and_cost() -> None:
    row = get_op("matmul")
    ins = [tensor(F32, Var("B"), 3, 4), tensor(F32, 4, 5)]
    assert row.infer(row.attrs(), ins) == tensor(F32, Var("B"), 3, 5)
    fixed = [tensor(F32, 3, 4), tensor(F32, 4, 5)]
    assert as_int(row.cost(row.attrs(), fixed, [tensor(F32, 3, 5)])) == 2 * 3 * 4 * 5


@for_each(
    ("op", "x", "w", "message"),
    [
        ("matmul", tensor(F32, 4), tensor(F32, 4, 5), "rank 2"),
        ("matmul", tensor(F32, 3, 4), tensor(F32, 5, 4), "inner dimensions"),
        ("matmul", tensor(F32, 3, 4), tensor(I32, 4, 5), "types f32, i32"),
        ("matmul", tensor(F32, 2, 3, 4), tensor(F32, 3, 4, 5), "broadcast"),
        ("matmul_i32acc", tensor(I8, 3, 4), tensor(I32, 4, 5), "8-bit"),
    ],
)
def test_refusals(op: str, x: TensorType, w: TensorType, message: str) -> None:
    row = get_op(op)
    with pytest.raises(TypeCheckError, match=message):
        row.infer(row.attrs(), [x, w])


@for_each("dtype", [ml_dtypes.bfloat16, np.float16])
def test_wide_products_are_given_in_f32(dtype: type) -> None:
    a, b = (RNG.standard_normal(s).astype(dtype) for s in ((2, 3, 40), (40, 5)))
    found = run_op("matmul_f32out", a, b)
    expected = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(TypeCheckError, match="16-bit floats"):
        run_op("matmul_f32out", a.astype(np.float32), b.astype(np.float32))
