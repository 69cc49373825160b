from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU, ON_GPU
from tests.passes.random_graphs import assert_same_results
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.passes.conv.split_conv_groups import split_conv_groups

RNG = np.random.default_rng(12)


def _graph(groups: int, inside: int, layout: str, constant: bool = True) -> Graph:
    g = GraphBuilder("f")
    channels = groups * inside
    shape = (2, 6, 5, channels) if layout == "channels_last" else (2, channels, 6, 5)
    x = g.input("x", tensor(F32, *shape))
    weights = RNG.standard_normal((groups * 4, inside, 3, 3)).astype(np.float32)
    w = g.constant(weights) if constant else g.input("w", tensor(F32, *weights.shape))
    attrs = ConvAttrs((2, 1), (1, 0, 1, 2), (1, 1), layout, groups)
    return g.graph(g.add("relu", g.add("conv", x, w, attrs=attrs)))


@for_each("layout", ["channels_first", "channels_last"])
@for_each("constant", [True, False])
def test_groups_become_an_axis(layout, constant):
    graph = _graph(3, 2, layout, constant)
    after = split_conv_groups(graph, ON_CPU)
    assert "group_conv" in [n.op for n in after.nodes]
    assert "conv" not in [n.op for n in after.nodes]
    assert_same_results(graph, after, rtol=1e-6)


@for_each(
    ("groups", "inside", "layout"),
    [(4, 1, "channels_last"), (1, 4, "channels_last"), (4, 1, "channels_first")],
)
def test_others_are_left_alone(groups, inside, layout):
    graph = _graph(groups, inside, layout)
    assert split_conv_groups(graph, ON_CPU) is graph


@for_each(
    ("filters", "inside", "kernel", "split"),
    [(4, 2, 3, False), (16, 2, 3, True), (4, 8, 3, True), (2, 8, 3, False), (8, 8, 1, False)],
)
def test_a_gpu_has_groups_that_fill_tiles(filters, inside, kernel, split):
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2, 3 * inside, 6, 5))
    weights = RNG.standard_normal((3 * filters, inside, kernel, kernel)).astype(np.float32)
    attrs = ConvAttrs((2, 1), (1, 0, 1, 2), (1, 1), "channels_first", 3)
    graph = g.graph(g.add("conv", x, g.constant(weights), attrs=attrs))
    after = split_conv_groups(graph, ON_GPU)
    assert ("group_conv" in [n.op for n in after.nodes]) == split
    assert_same_results(graph, after, rtol=1e-4)
    last = _graph(2, 2, "channels_last")
    assert split_conv_groups(last, ON_GPU) is not last


@for_each(("width", "pad", "split_first"), [(64, 1, True), (64, 0, False), (24, 1, False)])
def test_a_copy_of_long_lines_reads_through_a_transpose(width, pad, split_first):
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 1, 6, 4, width))
    last = g.add("transpose", x, attrs=TransposeAttrs((0, 2, 3, 1)))
    w = g.constant(RNG.standard_normal((6, 2, 3, 3)).astype(np.float32))
    attrs = ConvAttrs((1, 2), (pad,) * 4, (1, 1), "channels_last", 3)
    graph = g.graph(g.add("conv", last, w, attrs=attrs))
    after = split_conv_groups(graph, ON_CPU)
    (conv,) = (n for n in after.nodes if n.op == "group_conv")
    assert (after.producer[conv.inputs[0]].op == "transpose") == split_first
    assert_same_results(graph, after, rtol=1e-4)
