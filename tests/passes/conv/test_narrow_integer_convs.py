from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_GPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.core.dtypes import I8, I32, U8, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.conv.narrow_integer_convs import narrow_integer_convs

FIRST, LAST = "channels_first", "channels_last"
RNG = np.random.default_rng(0)


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    graph = random_graph(seed)
    assert_same_results(graph, narrow_integer_convs(graph, ON_GPU))


def _conv(
    dtype: DType,
    zero: int | None,
    weights: np.ndarray,
    weight_zero: np.ndarray | None = None,
    layout: str = FIRST,
    groups: int = 1,
) -> Graph:
    """A convolution of bytes in i32 as front ends write it."""
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, *((2, 4, 6, 5) if layout == FIRST else (2, 6, 5, 4))))
    wide = CastAttrs(I32)
    image, filters = (g.add("cast", v, attrs=wide) for v in (x, g.constant(weights)))
    if zero is not None:
        own = g.add("cast", g.constant(np.array(zero, dtype.numpy)), attrs=wide)
        image = g.add("sub", image, own)
    if weight_zero is not None:
        own = g.add("cast", g.constant(weight_zero), attrs=wide)
        filters = g.add("sub", filters, own)
    values = {"strides": (2, 1), "pads": (1, 0, 2, 1), "dilations": (1, 2), "layout": layout}
    attrs = make_attrs("conv", {**values, "groups": groups})
    return g.graph(g.add("conv", image, filters, attrs=attrs))


def _ops(graph: Graph) -> set[str]:
    return {n.op for n in graph.nodes}


def _same(graph: Graph, dtype: DType) -> Graph:
    """The graph after the pass, which computes the same of any bytes."""
    after = narrow_integer_convs(graph, ON_GPU)
    verify_graph(after)
    check_types(after)
    limits = np.iinfo(dtype.numpy)
    shape = [int(str(d)) for d in graph.inputs[0].type.shape]
    for _ in range(3):
        x = RNG.integers(limits.min, limits.max + 1, shape).astype(dtype.numpy)
        old, new = (run_graph(one, {"x": x})[one.outputs[0]] for one in (graph, after))
        np.testing.assert_array_equal(new, old)
        assert new.dtype == np.int32
    return after


@for_each("dtype", [I8, U8])
@for_each("zero", [None, 0, 3, 127])
@for_each("layout", [FIRST, LAST])
def test_bytes_are_multiplied_as_such(dtype: DType, zero: int | None, layout: str) -> None:
    weights = RNG.integers(-128, 128, (6, 4, 3, 2)).astype(np.int8)
    after = _same(_conv(dtype, zero, weights, None, layout), dtype)
    assert "conv_i32acc" in _ops(after)
    assert ("pad" in _ops(after)) == bool(zero)


@for_each("filters", [0, 1, 5])
@for_each("channels", [1, 3])
@for_each("size", [(7,), (5, 6), (4, 5, 4)])
def test_any_number_of_axes_channels_and_filters(
    filters: int, channels: int, size: tuple[int, ...]
) -> None:
    g, rank = GraphBuilder("f"), len(size)
    weights = RNG.integers(-128, 128, (filters, channels, *[2] * rank)).astype(np.int8)
    x, w = g.input("x", tensor(U8, 2, channels, *size)), g.constant(weights)
    wide, taps = (g.add("cast", v, attrs=CastAttrs(I32)) for v in (x, w))
    zero = g.add("cast", g.constant(np.array(200, np.uint8)), attrs=CastAttrs(I32))
    values = {"strides": (2,) * rank, "pads": (1,) * rank + (0,) * rank, "dilations": (1,) * rank}
    image = g.add("sub", wide, zero)
    graph = g.graph(g.add("conv", image, taps, attrs=make_attrs("conv", values)))
    assert "conv_i32acc" in _ops(_same(graph, U8))


def test_weights_less_their_zero_points() -> None:
    weights = RNG.integers(60, 188, (6, 4, 3, 2)).astype(np.uint8)
    assert "conv_i32acc" in _ops(_same(_conv(U8, 9, weights, np.array(124, np.uint8)), U8))
    zeros = RNG.integers(60, 70, (6, 1, 1, 1)).astype(np.uint8)
    assert "conv_i32acc" in _ops(_same(_conv(U8, 9, weights, zeros), U8))


def test_what_does_not_fit_in_bytes_stays() -> None:
    weights = RNG.integers(0, 256, (6, 4, 3, 2)).astype(np.uint8)
    weights.flat[:2] = 0, 255
    assert "conv_i32acc" not in _ops(_same(_conv(U8, 9, weights, np.array(124, np.uint8)), U8))


def test_groups_stay() -> None:
    weights = RNG.integers(-128, 128, (6, 2, 3, 2)).astype(np.int8)
    assert "conv_i32acc" not in _ops(_same(_conv(U8, 9, weights, groups=2), U8))


def test_weights_that_are_not_known_stay() -> None:
    g = GraphBuilder("f")
    x, w = (g.input(n, tensor(U8, 1, 4, 5, 5)) for n in "xw")
    wide = [g.add("cast", v, attrs=CastAttrs(I32)) for v in (x, w)]
    values = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
    graph = g.graph(g.add("conv", *wide, attrs=make_attrs("conv", values)))
    assert _ops(narrow_integer_convs(graph, ON_GPU)) == _ops(graph)
