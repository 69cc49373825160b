from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_with_dims import exprs, run_op
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import ExecutionError, TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.ops.tensor.indexing import (
    GatherAttrs,
    GatherNdAttrs,
    IndexPositionsAttrs,
    OneHotAttrs,
    ReverseSequenceAttrs,
)

RNG = np.random.default_rng(3)


@for_each("axis", [0, 1, -1])
@for_each("index_type", [np.int32, np.int64, np.uint8])
@for_each("shape", [(), (4,), (2, 3), (0,)])
def test_gather(axis: int, index_type: type, shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal((5, 4, 3)).astype(np.float32)
    size = x.shape[axis]
    low = 0 if np.dtype(index_type).kind == "u" else -size
    indices = RNG.integers(low, size, shape).astype(index_type)
    found = run_op("gather", x, indices, attrs=GatherAttrs(axis))
    np.testing.assert_array_equal(found, np.take(x, indices.astype(np.int64), axis))


def test_indices_outside_are_clamped_if_asked_for() -> None:
    attrs = GatherAttrs(0, "clip")
    found = run_op("gather", np.array([1, 2, 3]), np.array([-9, 9]), attrs=attrs)
    np.testing.assert_array_equal(found, [1, 3])


@for_each(("size", "index"), [(3, 3), (3, -4), (1, 1), (1, -2)])
@for_each("op", ["gather", "gather_elements", "gather_nd"])
def test_indices_outside_are_errors(op: str, size: int, index: int) -> None:
    indices = np.array([[0], [index]]) if op == "gather_nd" else np.array([0, index])
    attrs = GatherNdAttrs() if op == "gather_nd" else GatherAttrs(0)
    with pytest.raises(ExecutionError, match=f"index {index} is outside a dimension of {size}"):
        run_op(op, np.arange(size), indices, attrs=attrs)


def test_each_index_has_a_size_of_its_own() -> None:
    indices, sizes = np.array([[1, -1, 4], [0, -2, -5]], np.int32), np.array([[2, 3, 5]])
    found = run_op("index_positions", indices, sizes, attrs=IndexPositionsAttrs())
    np.testing.assert_array_equal(found, [[1, 2, 4], [0, 1, 0]])
    with pytest.raises(ExecutionError, match="index 2 is outside a dimension of 2"):
        run_op("index_positions", indices + 1, sizes, attrs=IndexPositionsAttrs())
    with pytest.raises(ExecutionError, match="index -1 is outside a dimension of 3"):
        run_op("index_positions", indices, sizes, attrs=IndexPositionsAttrs(wraps=False))


def test_gather_with_symbolic_sizes() -> None:
    x, indices = RNG.standard_normal((5, 4)), np.array([[-1, 0], [3, -5]])
    dims = [("V", "D"), ("N", "S")]
    found = run_op("gather", x, indices, attrs=GatherAttrs(0), dims=dims)
    np.testing.assert_array_equal(found, x[indices])


@for_each("axis", [0, 1, -1])
def test_gather_elements(axis: int) -> None:
    x = RNG.integers(0, 99, (4, 5, 3))
    indices = RNG.integers(-3, 3, (2, 5, 3))
    found = run_op("gather_elements", x, indices, attrs=GatherAttrs(axis))
    cut = x if axis == 0 else x[:2]
    np.testing.assert_array_equal(found, np.take_along_axis(cut, indices, axis))


@for_each("batch", [0, 1, 2])
@for_each("length", [1, 2])
def test_gather_nd(batch: int, length: int) -> None:
    x = RNG.standard_normal((2, 3, 4, 3))
    indices = RNG.integers(-2, 2, (2, 3, 5, length))
    found = run_op("gather_nd", x, indices, attrs=GatherNdAttrs(batch))
    for place in np.ndindex(*indices.shape[:-1]):
        element = x[(*place[:batch], *indices[place])]
        np.testing.assert_array_equal(found[place], element)


@for_each("axis", [0, 1, -1, -2])
def test_one_hot(axis: int) -> None:
    indices = np.array([[0, 3, -1], [-4, 4, -5]])
    values = np.array([2.0, 7.0])
    found = run_op("one_hot", indices, values, attrs=OneHotAttrs(const(4), axis))
    place = np.where(indices < 0, indices + 4, indices)
    expected = np.where(place[..., None] == np.arange(4), 7.0, 2.0)
    np.testing.assert_array_equal(found, np.moveaxis(expected, -1, axis))


def test_one_hot_takes_float_indices() -> None:
    found = run_op("one_hot", np.array([1.0]), np.array([0, 1]), attrs=OneHotAttrs(const(3)))
    np.testing.assert_array_equal(found, [[0, 1, 0]])


@for_each(("time", "batch"), [(0, 1), (1, 0)])
def test_reverse_sequence(time: int, batch: int) -> None:
    x = RNG.standard_normal((4, 4, 2))
    lengths = np.array([1, 4, 0, 3])
    attrs = ReverseSequenceAttrs(time, batch)
    found = np.moveaxis(run_op("reverse_sequence", x, lengths, attrs=attrs), (time, batch), (1, 0))
    for row, given, n in zip(found, np.moveaxis(x, (time, batch), (1, 0)), lengths, strict=True):
        np.testing.assert_array_equal(row, np.concatenate([given[:n][::-1], given[n:]]))


@pytest.mark.parametrize("time", [1, 4])
@pytest.mark.parametrize("wrong", [-1, 1])
def test_a_sequence_longer_than_its_axis_is_refused(time: int, wrong: int) -> None:
    lengths = np.array([0, time + 1 if wrong > 0 else -1])
    with pytest.raises(ExecutionError, match="outside a dimension"):
        run_op("reverse_sequence", np.ones((2, time)), lengths, attrs=ReverseSequenceAttrs(1, 0))


def test_shape_arithmetic_passes_through() -> None:
    g = GraphBuilder("t")
    shape = g.add("dims", attrs=DimsAttrs(exprs("N", 8, "S"), (3,)))
    last = g.add("gather", shape, g.constant(np.array(-1)), attrs=GatherAttrs(0))
    assert g.symbolic_value(last)[()] is Var("S")
    unknown = g.input("i", g.type(last))
    assert g.symbolic_value(g.add("gather", shape, unknown, attrs=GatherAttrs(0))) is None
    outside = g.constant(np.array(3))
    assert g.symbolic_value(g.add("gather", shape, outside, attrs=GatherAttrs(0))) is None


@for_each(
    ("op", "attrs", "arrays", "message"),
    [
        ("gather", GatherAttrs(0), (np.ones(3), np.ones(1)), "cast them"),
        ("gather", GatherAttrs(2), (np.ones(3), np.ones(1, int)), "axis 2"),
        ("gather", GatherAttrs(0), (np.ones(()), np.ones(1, int)), "scalar"),
        ("gather", GatherAttrs(0), (np.ones(0), np.ones(1, int)), "no elements"),
        ("gather_elements", GatherAttrs(0), (np.ones((2, 2)), np.ones((2, 3), int)), "reach"),
        ("gather_elements", GatherAttrs(0), (np.ones((2, 2)), np.ones(2, int)), "rank"),
        ("gather_nd", GatherNdAttrs(0), (np.ones(2), np.ones((1, 2), int)), "address"),
        ("gather_nd", GatherNdAttrs(1), (np.ones((2, 2)), np.ones((3, 1), int)), "first 1"),
        ("one_hot", OneHotAttrs(const(2)), (np.ones(2), np.ones(3)), "off, on"),
        ("reverse_sequence", ReverseSequenceAttrs(), (np.ones((2, 3)), np.ones(2, int)), "length"),
    ],
)
def test_refusals(op: str, attrs: object, arrays: tuple, message: str) -> None:
    with pytest.raises(TypeCheckError) as caught:
        run_op(op, *arrays, attrs=attrs)
    assert message in str(caught.value)


@for_each("op", ["gather_elements", "scatter_elements"])
def test_indices_of_open_sizes_are_assumed_to_lie_within_the_data(op: str) -> None:
    g = GraphBuilder("t")
    n, m = Var("N"), Var("M")
    data, indices = g.input("x", tensor(F32, n, 4)), g.input("i", tensor(I64, m, 4))
    more = [] if op == "gather_elements" else [g.input("u", tensor(F32, m, 4))]
    graph = g.graph(g.add(op, data, indices, *more, attrs=make_attrs(op, {"axis": 1})))
    (check,) = graph.checks
    assert str(check.condition) == "M < N + 1"
