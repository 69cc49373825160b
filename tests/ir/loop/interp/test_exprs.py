"""Scalars, lanes and whole arrays compute the same bits: one meaning, three ways to run it."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.for_each import for_each
from tests.strategies_loop import ELEMENT_DTYPES, elements
from tilewright.arith.expr import Binary, Expr, Load, Var, const
from tilewright.arith.vector import Ramp
from tilewright.arith.walk import substitute
from tilewright.core.dtypes import BOOL, F32, I8, I32, I64, U8, DType
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Buffer, For, Func, Store
from tilewright.ir.tensor.interp import run_program
from tilewright.ir.tensor.nodes import Program, Stage, Tensor

N = 8
I = Var("i")  # noqa: E741


def _inputs() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(1)
    arrays = {}
    for dtype in ELEMENT_DTYPES:
        values = rng.integers(-100, 100, N) * (0.37 if dtype.is_float else 1)
        if dtype.is_float:
            values[:5] = (0.0, -0.0, np.inf, np.nan, 7e4)
        with np.errstate(over="ignore"):
            arrays[f"x_{dtype}"] = values.astype(dtype.numpy)
    return arrays


INPUTS = _inputs()


def run_scalar(e: Expr) -> np.ndarray:
    return _run(For("i", const(N), "serial", Store("y", (I,), e)), e.dtype)


def run_lanes(e: Expr) -> np.ndarray:
    lanes = Ramp(const(0), 1, N)
    return _run(Store("y", (lanes,), substitute(e, {"i": lanes})), e.dtype)


def _run(body, dtype: DType) -> np.ndarray:
    params = [Buffer(f"x_{d}", d, (const(N),)) for d in ELEMENT_DTYPES]
    func = Func("f", (*params, Buffer("y", dtype, (const(N),))), ("y",), body)
    y = np.zeros(N, dtype.numpy)
    run_func(func, {**INPUTS, "y": y})
    return y


def run_grid(e: Expr) -> np.ndarray:
    inputs = tuple(Tensor(f"x_{d}", d, (const(N),)) for d in ELEMENT_DTYPES)
    program = Program("p", inputs, (Stage("y", (const(N),), ("i",), e),), ("y",))
    return run_program(program, INPUTS)["y"]


def assert_same_bits(a: np.ndarray, b: np.ndarray) -> None:
    assert a.dtype == b.dtype
    if a.dtype.kind in "biu":
        np.testing.assert_array_equal(a, b)
        return
    wide = a.astype(np.float64), b.astype(np.float64)
    np.testing.assert_array_equal(*wide)
    known = ~np.isnan(wide[0])  # the sign of a NaN means nothing
    np.testing.assert_array_equal(*(np.signbit(w[known]) for w in wide))


@given(st.sampled_from(ELEMENT_DTYPES).flatmap(elements))
def test_three_ways_to_run_an_expression(e):
    scalar = run_scalar(e)
    assert_same_bits(scalar, run_grid(e))
    assert_same_bits(scalar, run_lanes(e))


@for_each(
    ("dtype", "op", "a", "b", "expected"),
    [
        (I8, "add", 127, 1, -128),
        (I8, "div", -128, -1, -128),
        (U8, "sub", 0, 1, 255),
        (I32, "mul", 1 << 30, 4, 0),
        (I32, "div", -7, 2, -3),
        (I32, "rem", -7, 2, -1),
        (I32, "floordiv", -7, 2, -4),
        (I32, "mod", -7, 2, 1),
        (I32, "mod", 7, 0, 0),
        (I32, "div", 7, 0, 0),
        (I32, "shl", 1, 31, -(1 << 31)),
        (I32, "shl", 1, 32, 0),
        (I32, "shr", -5, 40, -1),
        (I64, "mul", 1 << 62, 2, -(1 << 63)),
        (F32, "add", 1.0, 2.0**-25, 1.0),
        (F32, "min", np.nan, 1.0, np.nan),
        (F32, "max", 1.0, np.nan, np.nan),
        (F32, "div", 1.0, 0.0, np.inf),
        (F32, "mod", -1.0, 3.0, 2.0),
        (F32, "rem", -1.0, 3.0, -1.0),
        (BOOL, "xor", True, True, False),
    ],
)
def test_operators(dtype, op, a, b, expected):
    values = np.full(N, a, dtype.numpy)
    e = Binary(op, Load(f"x_{dtype}", (I,), dtype), const(b, dtype))
    saved, INPUTS[f"x_{dtype}"] = INPUTS[f"x_{dtype}"], values
    try:
        results = run_scalar(e), run_lanes(e), run_grid(e)
    finally:
        INPUTS[f"x_{dtype}"] = saved
    for result in results:
        np.testing.assert_array_equal(result, np.full(N, expected, dtype.numpy))
