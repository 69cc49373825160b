from __future__ import annotations

import numpy as np

from tests.differential.native import random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_GPU
from tilewright.arith.expr import as_int
from tilewright.core.dtypes import F16, F32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.conv.pad_for_tensor_cores import pad_for_tensor_cores


def _conv(channels: int, kernel: int, dtype: DType = F16, layout: str = "channels_last") -> Graph:
    g = GraphBuilder("f")
    shape = (2, 9, 8, channels) if layout == "channels_last" else (2, channels, 9, 8)
    rng = np.random.default_rng(channels)
    weights = rng.standard_normal((5, channels, kernel, kernel)).astype(dtype.numpy)
    values = {"strides": (2, 1), "pads": (1, 0, 1, 1), "dilations": (1, 1), "layout": layout}
    x = g.input("x", tensor(dtype, *shape))
    return g.graph(g.add("conv", x, g.constant(weights), attrs=make_attrs("conv", values)))


def _padded(graph: Graph) -> Graph:
    """The graph after the pass, which means the same and has nothing left to do."""
    after = pad_for_tensor_cores(graph, ON_GPU)
    verify_graph(after)
    check_types(after)
    assert pad_for_tensor_cores(after, ON_GPU) is after
    inputs = random_inputs(graph)
    found, right = run_graph(after, inputs), run_graph(graph, inputs)
    for new, old in zip(after.outputs, graph.outputs, strict=True):
        np.testing.assert_allclose(found[new], right[old], rtol=1e-2, atol=1e-2)
    return after


@for_each(("channels", "kernel"), [(3, 5), (1, 7), (7, 3)])
def test_few_channels_become_a_vector(channels: int, kernel: int) -> None:
    after = _padded(_conv(channels, kernel))
    assert [n.op for n in after.nodes] == ["pad", "conv"]
    assert [str(d) for d in after.tensor_type(after.nodes[0].name).shape] == ["2", "9", "8", "8"]


@for_each(
    "graph",
    [_conv(8, 3), _conv(12, 3), _conv(3, 3), _conv(3, 5, F32), _conv(3, 5, F16, "channels_first")],
)
def test_others_stay(graph: Graph) -> None:
    assert pad_for_tensor_cores(graph, ON_GPU) is graph


def _made(
    channels: int,
    made: str,
    dtype: DType,
    layout: str,
    kernel: int = 3,
    stride: int = 1,
    filters: int = 5,
) -> Graph:
    """A convolution along one axis of what is computed before."""
    g = GraphBuilder("f")
    last = layout == "channels_last"
    x = g.input("x", tensor(dtype, *((2, 32, channels) if last else (2, channels, 32))))
    rng = np.random.default_rng(channels)
    if made == "conv":
        square = rng.standard_normal((channels, channels, 1)).astype(dtype.numpy)
        one = {"strides": (1,), "pads": (0, 0), "dilations": (1,), "layout": layout}
        x = g.add("relu", g.add("conv", x, g.constant(square), attrs=make_attrs("conv", one)))
    elif made:
        x = g.add(made, x)
    weights = rng.standard_normal((filters, channels, kernel)).astype(dtype.numpy) / channels
    values = {"strides": (stride,), "pads": (0, 0), "dilations": (1,), "layout": layout}
    weighted = g.constant(weights.astype(dtype.numpy))
    return g.graph(g.add("conv", x, weighted, attrs=make_attrs("conv", values)))


@for_each(
    ("channels", "dtype", "layout", "wide"),
    [(129, F32, "channels_first", 144), (129, F16, "channels_last", 144)],
)
def test_who_computes_channels_writes_some_more(
    channels: int, dtype: DType, layout: str, wide: int
) -> None:
    after = _padded(_made(channels, "tanh", dtype, layout))
    assert [n.op for n in after.nodes] == ["tanh", "pad", "conv"]
    assert wide in {as_int(d) for d in after.tensor_type(after.nodes[1].name).shape}


@for_each("made", ["", "conv"])
def test_channels_of_many_terms_and_filters_are_copied(made: str) -> None:
    after = _padded(_made(129, made, F16, "channels_last", filters=16))
    assert [n.op for n in after.nodes[-2:]] == ["pad", "conv"]
    assert 144 in {as_int(d) for d in after.tensor_type(after.nodes[-2].name).shape}


@for_each(("stride", "filters", "padded"), [(1, 512, True), (1, 256, False), (2, 512, False)])
def test_pixels_become_whole_sectors_where_many_filters_share_them(
    stride: int, filters: int, padded: bool
) -> None:
    """Every second pixel begins with a sector anyway."""
    graph = _made(136, "", F16, "channels_last", stride=stride, kernel=3, filters=filters)
    after = pad_for_tensor_cores(graph, ON_GPU)
    assert [n.op for n in after.nodes] == (["pad", "conv"] if padded else ["conv"])
    if padded:
        assert 144 in {as_int(d) for d in after.tensor_type(after.nodes[0].name).shape}


@for_each(
    "graph",
    [
        _made(129, "", F16, "channels_last"),  # few filters
        _made(129, "", F32, "channels_first"),  # somebody else's
        _made(129, "conv", F32, "channels_first"),  # what follows a sum is not padded with it
        _made(24, "tanh", F32, "channels_first"),  # too many more
        _made(129, "tanh", F16, "channels_first"),  # no vectors of channels
        _made(1, "tanh", F16, "channels_last", 16, 8),  # a window is whole vectors as it lies
    ],
)
def test_channels_that_stay(graph: Graph) -> None:
    assert pad_for_tensor_cores(graph, ON_GPU) is graph


def _product(sizes: tuple[int, ...], dtype: DType, made: str = "exp", axis: int = -1) -> Graph:
    """A product of several parts, of which all but the first are computed."""
    g = GraphBuilder("f")
    first, *rest = (g.input(f"x{i}", tensor(dtype, 6, n)) for i, n in enumerate(sizes))
    parts = [first, *(g.add(made, x) for x in rest)]
    joined = g.add("concat", *parts, attrs=make_attrs("concat", {"axis": axis}))
    weights = np.random.default_rng(0).standard_normal((sum(sizes), 5)).astype(dtype.numpy)
    return g.graph(g.add("matmul", joined, g.constant(weights)))


@for_each(
    ("sizes", "dtype", "width"), [((20, 17), F16, 40), ((16, 9, 8), F32, 36), ((30, 6, 3), F16, 40)]
)
def test_what_is_joined_becomes_whole_vectors(
    sizes: tuple[int, ...], dtype: DType, width: int
) -> None:
    after = _padded(_product(sizes, dtype))
    (product,) = (n for n in after.nodes if n.op == "matmul")
    assert str(after.tensor_type(product.inputs[0]).shape[-1]) == str(width)


@for_each(
    "graph",
    [_product((20, 20), F16), _product((7, 6), F16), _product((20, 17), F16, "softmax")],
)
def test_other_products_stay(graph: Graph) -> None:
    assert pad_for_tensor_cores(graph, ON_GPU) is graph
