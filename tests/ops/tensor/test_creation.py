from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_with_dims import exprs, run_op
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import BOOL, F16, F32, I8, I32, I64
from tilewright.core.errors import TypeCheckError
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.creation import DimsAttrs, EyeAttrs, FullAttrs, RangeAttrs


@for_each(
    ("shape", "value", "dtype"),
    [((2, 3), 1.5, F32), ((), -1, I8), ((0, 2), 7, I64), ((3,), True, BOOL), ((1,), 0.1, F16)],
)
def test_full(shape: tuple[int, ...], value: float, dtype: object) -> None:
    found = run_op("full", attrs=FullAttrs(exprs(*shape), value, dtype))
    np.testing.assert_array_equal(found, np.full(shape, value, dtype.numpy))


@for_each(("start", "delta", "count"), [(0, 1, 5), (10, -3, 4), (-2, 2, 0)])
def test_range(start: int, delta: int, count: int) -> None:
    attrs = RangeAttrs(const(start), const(delta), const(count), I32)
    expected = (start + delta * np.arange(count)).astype(np.int32)
    np.testing.assert_array_equal(run_op("range", attrs=attrs), expected)


def test_symbolic_range() -> None:
    attrs = RangeAttrs(Var("P"), const(1), Var("S"))
    found = run_op("range", attrs=attrs, sizes={"P": 7, "S": 3})
    np.testing.assert_array_equal(found, [7, 8, 9])


@for_each("k", [-4, -1, 0, 2])
def test_eye_like(k: int) -> None:
    found = run_op("eye_like", attrs=EyeAttrs(exprs(3, 5), k, F32))
    np.testing.assert_array_equal(found, np.eye(3, 5, k, np.float32))


def test_dims() -> None:
    values = (Var("N"), const(3), Var("N") * 2 + 1, const(-1))
    for shape in ((4,), (2, 2)):
        found = run_op("dims", attrs=DimsAttrs(values, shape), sizes={"N": 5})
        np.testing.assert_array_equal(found, np.array([5, 3, 11, -1]).reshape(shape))
    assert run_op("dims", attrs=DimsAttrs(exprs("N"), ()), sizes={"N": 5}) == 5
    assert run_op("dims", attrs=DimsAttrs((), (0,))).shape == (0,)


def test_values_are_known() -> None:
    g = GraphBuilder("t")
    shape = g.add("dims", attrs=DimsAttrs(exprs("N", 3), (2,)))
    assert g.symbolic_value(shape).tolist() == [Var("N"), const(3)]
    ones = g.add("full", attrs=FullAttrs(exprs(2), 1, I64))
    assert g.symbolic_value(ones).tolist() == [const(1)] * 2
    some = g.add("range", attrs=RangeAttrs(Var("N"), const(2), const(2)))
    assert [str(e) for e in g.symbolic_value(some)] == ["N", "N + 2"]


def test_large_and_symbolic_values_are_not_tracked() -> None:
    g = GraphBuilder("t")
    for shape in (("N",), (1000,)):
        assert g.symbolic_value(g.add("full", attrs=FullAttrs(exprs(*shape), 1, I64))) is None
        count = exprs(*shape)[0]
        assert g.symbolic_value(g.add("range", attrs=RangeAttrs(const(0), const(1), count))) is None


def test_refusals() -> None:
    with pytest.raises(TypeCheckError, match="integer type"):
        run_op("range", attrs=RangeAttrs(const(0), const(1), const(3), F32))
    with pytest.raises(TypeCheckError, match="rank 1"):
        run_op("eye_like", attrs=EyeAttrs(exprs(3), 0, F32))
    with pytest.raises(TypeCheckError, match="2 values"):
        run_op("dims", attrs=DimsAttrs(exprs(1, 2), (3,)))
