from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_with_dims import exprs, run_op
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.tensor.build import Builder
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs

RNG = np.random.default_rng(1)


def cut(*ranges: tuple[object, object, int]) -> SliceAttrs:
    starts, stops, steps = zip(*ranges, strict=True)
    return SliceAttrs(exprs(*starts), exprs(*stops), steps)


@for_each(
    ("ranges", "expected"),
    [
        (((0, 5, 1), (1, 6, 2)), np.s_[:, 1:6:2]),
        (((4, -1, -1), (6, 0, -3)), np.s_[::-1, 6:0:-3]),
        (((3, 2, 1), (0, 7, 1)), np.s_[3:2, :]),
        (((2, 3, 1), (0, 7, 7)), np.s_[2:3, ::7]),
        (((1, 4, -1), (0, 7, 1)), np.s_[1:4:-1, :]),
    ],
)
def test_slice(ranges: tuple, expected: tuple) -> None:
    x = RNG.standard_normal((5, 7))
    np.testing.assert_array_equal(run_op("slice", x, attrs=cut(*ranges)), x[expected])


@for_each("n", [1, 2, 6])
def test_slice_with_symbolic_bounds(n: int) -> None:
    x = RNG.standard_normal((n, 3))
    last = cut((Var("N") - 1, "N", 1), (0, 3, 1))
    np.testing.assert_array_equal(run_op("slice", x, attrs=last, dims=[("N", 3)]), x[-1:])
    but_last = cut((0, Var("N") - 1, 1), (0, 3, 1))
    np.testing.assert_array_equal(run_op("slice", x, attrs=but_last, dims=[("N", 3)]), x[:-1])
    backwards = cut((Var("N") - 1, -1, -2), (0, 3, 1))
    np.testing.assert_array_equal(run_op("slice", x, attrs=backwards, dims=[("N", 3)]), x[::-2])


def test_a_symbolic_bound_outside_reads_zeros() -> None:
    x = np.arange(3, dtype=np.float32)
    found = run_op("slice", x, attrs=cut((0, "S", 1)), sizes={"S": 5})
    np.testing.assert_array_equal(found, [0, 1, 2, 0, 0])


def test_slice_within_bounds_has_no_mask() -> None:
    b = Builder("t")
    n = Var("N")
    x = b.input("x", F32, (n, 8))
    attrs = cut((1, "N", 1), (2, 8, 3))
    out = get_op("slice").infer(attrs, [tensor(F32, n, 8)])
    get_op("slice").te(b, attrs, [x], [out])
    assert str(b.stages[0].body) == "x[i0 + 1, i1 * 3 + 2]"
    assert str(out) == "f32[N - 1, 2]"


def test_slice_refuses_bad_ranges() -> None:
    with pytest.raises(TypeCheckError, match="one start, stop and step"):
        run_op("slice", np.ones((2, 3)), attrs=cut((0, 1, 1)))
    with pytest.raises(TypeCheckError, match="step is 0"):
        run_op("slice", np.ones(3), attrs=cut((0, 1, 0)))


@for_each("sizes", [(1,), (2, 3), (0, 4), (3, 0, 1, 2, 5), (0, 0)])
@for_each("axis", [0, 1, -1])
def test_concat(sizes: tuple[int, ...], axis: int) -> None:
    parts = []
    for size in sizes:
        shape = [3, 2, 4]
        shape[axis] = size
        parts.append(RNG.integers(0, 100, shape))
    found = run_op("concat", *parts, attrs=ConcatAttrs(axis))
    np.testing.assert_array_equal(found, np.concatenate(parts, axis))


def test_concat_of_symbolic_sizes() -> None:
    x, y = RNG.standard_normal((3, 2)), RNG.standard_normal((4, 2))
    z = RNG.standard_normal((1, 2))
    dims = [("A", 2), ("B", 2)]
    found = run_op("concat", x, y, z, attrs=ConcatAttrs(0), dims=dims)
    np.testing.assert_array_equal(found, np.concatenate([x, y, z]))


def test_concat_refuses_other_shapes() -> None:
    with pytest.raises(TypeCheckError, match="differ in dimension 1"):
        run_op("concat", np.ones((2, 3)), np.ones((2, 4)), attrs=ConcatAttrs(0))
    with pytest.raises(TypeCheckError, match="one rank"):
        run_op("concat", np.ones((2, 3)), np.ones(3), attrs=ConcatAttrs(0))
    with pytest.raises(TypeCheckError, match="types"):
        run_op("concat", np.ones(3), np.ones(3, np.float32), attrs=ConcatAttrs(0))


def test_shape_arithmetic_passes_through() -> None:
    g = GraphBuilder("t")
    shape = g.add("dims", attrs=DimsAttrs(exprs("N", 8, "S", 64), (4,)))
    tail = g.add("slice", shape, attrs=cut((3, 1, -1)))
    joined = g.add("concat", tail, g.constant(np.array([-1])), attrs=ConcatAttrs(0))
    assert g.symbolic_value(joined).tolist() == [const(64), Var("S"), const(-1)]
    assert g.symbolic_value(g.add("slice", joined, attrs=cut((0, "K", 1)))) is None
