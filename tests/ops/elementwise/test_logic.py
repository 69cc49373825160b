"""Comparison, logic and choice against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import FALSE, TRUE, Var, const
from tilewright.core.dtypes import I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.elementwise.logic import IsInfAttrs, ShiftAttrs
from tilewright.ops.graph_builder import GraphBuilder

COMPARISONS = {
    "equal": np.equal,
    "less": np.less,
    "less_or_equal": np.less_equal,
    "greater": np.greater,
    "greater_or_equal": np.greater_equal,
}
LOGIC = {"and": np.logical_and, "or": np.logical_or, "xor": np.logical_xor}
BITS = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
FLOATS = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan], np.float32)


@for_each("name", COMPARISONS)
@for_each("dtype", ["float32", "float64", "float16", "int8", "uint8", "int64"])
def test_comparison(name: str, dtype: str) -> None:
    values = FLOATS if np.dtype(dtype).kind == "f" else np.array([0, 1, 5, 127, 100])
    a, b = values.astype(dtype)[:, None], values.astype(dtype)
    found = run_op(name, a, b)
    np.testing.assert_array_equal(found, COMPARISONS[name](a, b))


def test_unsigned_comparison_has_no_sign() -> None:
    a, b = np.array([200], np.uint8), np.array([100], np.uint8)
    assert run_op("greater", a, b) == [True]


def test_truth_values() -> None:
    a, b = np.array([[True], [False]]), np.array([True, False])
    for name, reference in LOGIC.items():
        np.testing.assert_array_equal(run_op(name, a, b), reference(a, b))
    np.testing.assert_array_equal(run_op("not", b), [False, True])
    np.testing.assert_array_equal(run_op("equal", a, b), a == b)
    with pytest.raises(TypeCheckError, match="it takes bool"):
        run_op("and", np.ones(2, np.int32), np.ones(2, np.int32))


@for_each("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_bits(dtype: str) -> None:
    a = np.arange(-8, 8).astype(dtype)
    b = a[::-1].copy() * np.array(3, dtype)
    for name, reference in BITS.items():
        np.testing.assert_array_equal(run_op(f"bitwise_{name}", a, b), reference(a, b))
    np.testing.assert_array_equal(run_op("bitwise_not", a), ~a)


@for_each("dtype", ["uint8", "uint16", "uint32", "uint64"])
def test_shift(dtype: str) -> None:
    x = np.array([1, 16, 255, 7, 3], dtype)
    count = np.array(
        [1, 3, 0, np.dtype(dtype).itemsize * 8 - 1, np.dtype(dtype).itemsize * 8], dtype
    )
    bits = np.dtype(dtype).itemsize * 8
    wide = [int(v) << int(c) for v, c in zip(x, count, strict=True)]
    left = np.array([v % (1 << bits) if c < bits else 0 for v, c in zip(wide, count, strict=True)])
    right = np.array([int(v) >> int(c) for v, c in zip(x, count, strict=True)])
    np.testing.assert_array_equal(run_op("bit_shift", x, count, attrs=ShiftAttrs(True)), left)
    np.testing.assert_array_equal(run_op("bit_shift", x, count, attrs=ShiftAttrs(False)), right)


def test_kinds_of_numbers() -> None:
    np.testing.assert_array_equal(run_op("is_nan", FLOATS), np.isnan(FLOATS))
    for positive in (False, True):
        for negative in (False, True):
            found = run_op("is_inf", FLOATS, attrs=IsInfAttrs(positive, negative))
            expected = (np.isposinf(FLOATS) & positive) | (np.isneginf(FLOATS) & negative)
            np.testing.assert_array_equal(found, expected)


@for_each("dtype", ["float32", "int64", "bool", "uint8", "float16"])
def test_where(dtype: str) -> None:
    cond = np.array([[True], [False]])
    a, b = np.arange(3).astype(dtype), (np.arange(6).reshape(2, 3) + 7).astype(dtype)
    found = run_op("where", cond, a, b, dims=[("N", 1), ("M",), ("N", "M")])
    np.testing.assert_array_equal(found, np.where(cond, a, b))
    with pytest.raises(TypeCheckError, match="not bool"):
        run_op("where", a.astype("i4"), a, b)


def test_what_shapes_decide() -> None:
    """`where(shape == -1, 1, shape)`, as exporters write it, is the shape itself."""
    g = GraphBuilder("test")
    shape = g.input("s", tensor(I64, 2))
    box = np.empty(2, dtype=object)
    box[:] = [Var("n"), const(4)]
    g._known[shape] = box
    minus_one = g.constant(np.array([-1, -1]))
    test = g.add("equal", shape, minus_one)
    assert list(g.symbolic_value(test)) == [FALSE, FALSE]
    assert list(g.symbolic_value(g.add("not", test))) == [TRUE, TRUE]
    chosen = g.add("where", test, g.constant(np.array([1, 1])), shape)
    assert list(g.symbolic_value(chosen)) == [Var("n"), const(4)]
