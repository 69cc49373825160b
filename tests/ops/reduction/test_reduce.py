"""Reductions against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import exprs, run_op
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.reduction.reduce import ArgAttrs, ReduceAttrs

Reference = Callable[..., np.ndarray]

REFERENCES: dict[str, Reference] = {
    "sum": np.sum,
    "mean": np.mean,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "l1": lambda x, **k: np.sum(np.abs(x), **k),
    "l2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "log_sum": lambda x, **k: np.log(np.sum(x, **k)),
    "log_sum_exp": lambda x, **k: np.log(np.sum(np.exp(x), **k)),
    "sum_square": lambda x, **k: np.sum(x * x, **k),
}
AXES = [(0,), (1,), (-1,), (0, 2), (2, 1), (0, 1, 2), ()]


@for_each("axes", AXES)
@for_each("keepdims", [True, False])
@for_each("name", REFERENCES)
def test_floats(name: str, axes: tuple[int, ...], keepdims: bool) -> None:
    x = np.random.default_rng(0).uniform(0.1, 2, (3, 4, 5)).astype(np.float32)
    expected = REFERENCES[name](x.astype("f8"), axis=axes, keepdims=keepdims)
    attrs = ReduceAttrs(axes, keepdims)
    for dims in (None, [("N", 4, "M")]):
        found = run_op(f"reduce_{name}", x, attrs=attrs, dims=dims)
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=2e-6, atol=1e-7)


@for_each("dtype", ["float16", "bfloat16"])
@for_each("name", [n for n in REFERENCES if n != "prod"])
def test_short_floats_are_summed_as_long_ones(name: str, dtype: str) -> None:
    x = np.random.default_rng(1).uniform(0.1, 1, (2, 700)).astype(np.dtype(dtype))
    expected = REFERENCES[name](x.astype("f8"), axis=1)
    found = run_op(f"reduce_{name}", x, attrs=ReduceAttrs((1,), False))
    assert found.dtype == x.dtype
    eps = float(ml_dtypes.finfo(x.dtype).eps)
    np.testing.assert_allclose(found.astype("f8"), expected, rtol=eps)


@for_each("dtype", ["int32", "int64", "uint8", "int8"])
@for_each("name", ["sum", "max", "min", "prod", "l1", "sum_square", "mean"])
def test_integers(name: str, dtype: str) -> None:
    low = 0 if dtype.startswith("u") else -4
    x = np.random.default_rng(2).integers(low, 5, (3, 4)).astype(dtype)
    exact = REFERENCES[name](x.astype("i8"), axis=1)
    expected = np.trunc(exact).astype("i8").astype(dtype)
    np.testing.assert_array_equal(
        run_op(f"reduce_{name}", x, attrs=ReduceAttrs((1,), False)), expected
    )


def test_l2_of_integers_truncates() -> None:
    x = np.array([[3, 4], [1, 1]], np.int32)
    found = run_op("reduce_l2", x, attrs=ReduceAttrs((1,), False))
    np.testing.assert_array_equal(found, np.array([5, 1], np.int32))


def test_truth_values() -> None:
    x = np.array([[True, False], [False, False], [True, True]])
    attrs = ReduceAttrs((1,), False)
    np.testing.assert_array_equal(run_op("reduce_max", x, attrs=attrs), x.any(1))
    np.testing.assert_array_equal(run_op("reduce_min", x, attrs=attrs), x.all(1))


@for_each(
    ("name", "expected"),
    [
        ("sum", 0.0),
        ("prod", 1.0),
        ("max", -np.inf),
        ("min", np.inf),
        ("mean", np.nan),
        ("l2", 0.0),
        ("log_sum", -np.inf),
        ("log_sum_exp", -np.inf),
    ],
)
def test_nothing_to_reduce(name: str, expected: float) -> None:
    found = run_op(f"reduce_{name}", np.ones((2, 0), np.float32), attrs=ReduceAttrs((1,), True))
    np.testing.assert_array_equal(found, np.full((2, 1), expected, np.float32))


def test_nothing_results() -> None:
    found = run_op("reduce_sum", np.ones((0, 3), np.float32), attrs=ReduceAttrs((1,), False))
    assert found.shape == (0,)


def test_scalar_operand() -> None:
    found = run_op("reduce_sum", np.array(3.0, np.float32), attrs=ReduceAttrs((), True))
    assert found.shape == ()
    assert found == 3


@for_each("name", ["max", "min", "sum"])
def test_nan_is_kept(name: str) -> None:
    x = np.array([[1, np.nan, 2], [3, 4, 5]], np.float32)
    found = run_op(f"reduce_{name}", x, attrs=ReduceAttrs((1,), False))
    np.testing.assert_array_equal(found, REFERENCES[name](x, axis=1))


def test_log_sum_exp_does_not_overflow() -> None:
    x = np.array([[1e3, 1e3], [-1e3, -1e3], [np.inf, 0], [-np.inf, -np.inf], [np.nan, 0]], "f4")
    found = run_op("reduce_log_sum_exp", x, attrs=ReduceAttrs((1,), False))
    expected = [1e3 + np.log(2), -1e3 + np.log(2), np.inf, -np.inf, np.nan]
    np.testing.assert_allclose(found, np.array(expected, "f4"))


@for_each("op", ["max", "min"])
@for_each("last", [False, True])
@for_each("axis", [0, 1, -1])
@for_each("dtype", ["float32", "int64", "uint8", "float16"])
def test_position(op: str, last: bool, axis: int, dtype: str) -> None:
    x = np.random.default_rng(3).integers(0, 3, (4, 5, 6)).astype(dtype)
    reference = getattr(np, f"arg{op}")
    expected = reference(x, axis=axis, keepdims=True)
    if last:
        expected = x.shape[axis] - 1 - reference(np.flip(x, axis), axis=axis, keepdims=True)
    found = run_op(f"arg{op}", x, attrs=ArgAttrs(axis, True, last), dims=[("A", "B", "C")])
    np.testing.assert_array_equal(found, expected)
    flat = run_op(f"arg{op}", x, attrs=ArgAttrs(axis, False, last))
    np.testing.assert_array_equal(flat, expected.squeeze(axis))


@for_each("op", ["max", "min"])
def test_position_of_infinities_and_nan(op: str) -> None:
    x = np.array([[1, np.nan, 5, np.nan], [-np.inf] * 4, [np.inf] * 4], np.float32)
    found = run_op(f"arg{op}", x, attrs=ArgAttrs(1, False))
    np.testing.assert_array_equal(found, getattr(np, f"arg{op}")(x, axis=1))


def test_type_errors() -> None:
    x = np.ones((2, 3), np.float32)
    with pytest.raises(TypeCheckError, match="axis 2 is outside a tensor of rank 2"):
        run_op("reduce_sum", x, attrs=ReduceAttrs((2,)))
    with pytest.raises(TypeCheckError, match="twice"):
        run_op("reduce_sum", x, attrs=ReduceAttrs((0, -2)))
    with pytest.raises(TypeCheckError, match="is empty"):
        run_op("argmax", np.ones((2, 0), np.float32), attrs=ArgAttrs(1))
    with pytest.raises(TypeCheckError, match="it takes floats"):
        run_op("reduce_log_sum_exp", np.ones(3, np.int32), attrs=ReduceAttrs((0,)))


def test_shape_arithmetic() -> None:
    g = GraphBuilder("test")
    shape = g.input("s", tensor(I64, 3))
    box = np.empty(3, dtype=object)
    box[:] = exprs("N", 4, 5)
    g._known[shape] = box
    count = g.symbolic_value(g.add("reduce_prod", shape, attrs=ReduceAttrs((0,), False)))
    assert count is not None
    assert count.shape == ()
    assert str(count[()]) == "N * 4 * 5"
    total = g.symbolic_value(g.add("reduce_sum", shape, attrs=ReduceAttrs((0,), True)))
    assert total is not None
    assert list(map(str, total)) == ["N + 4 + 5"]
    assert Var("N") * const(1) is Var("N")
