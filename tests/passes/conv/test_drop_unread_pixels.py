from __future__ import annotations

import numpy as np

from tests.differential.native import random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU, ON_GPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.conv.drop_unread_pixels import drop_unread_pixels


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    graph = random_graph(seed)
    assert_same_results(graph, drop_unread_pixels(graph, ON_CPU))


def _conv(
    sizes: tuple[object, ...],
    kernel: tuple[int, ...],
    pads: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2, 3, *sizes))
    weights = np.random.default_rng(0).standard_normal((4, 3, *kernel)).astype(np.float32)
    values = {"strides": strides, "pads": pads, "dilations": dilations}
    return g.graph(g.add("conv", x, g.constant(weights), attrs=make_attrs("conv", values)))


@for_each(
    ("graph", "strides", "dilations", "pads"),
    [
        (_conv((9,), (3,), (2, 2), (2,), (2,)), (1,), (1,), (1, 1)),
        (_conv((10,), (3,), (2, 2), (2,), (2,)), (1,), (1,), (1, 1)),
        (_conv((9,), (3,), (1, 3), (2,), (2,)), (1,), (1,), (1, 2)),  # from the second pixel on
        (_conv((20,), (2,), (0, 0), (2,), (4,)), (1,), (2,), (0, 0)),
        (_conv((21,), (3,), (5, 4), (6,), (3,)), (2,), (1,), (2, 0)),
        (_conv((9, 7), (3, 3), (2, 1, 2, 1), (2, 2), (2, 1)), (1, 2), (1, 1), (1, 1, 1, 1)),
        (_conv((9, 7), (3, 1), (2, 0, 2, 0), (2, 2), (2, 2)), (1, 2), (1, 2), (1, 0, 1, 0)),
    ],
)
def test_what_is_between_taps_goes(
    graph: Graph, strides: tuple[int, ...], dilations: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    after = drop_unread_pixels(graph, ON_CPU)
    verify_graph(after)
    check_types(after)
    kept, n = after.nodes
    assert kept.op == "slice"
    assert (n.attrs.strides, n.attrs.dilations, n.attrs.pads) == (strides, dilations, pads)
    assert n.type == graph.nodes[0].type
    assert drop_unread_pixels(after, ON_CPU) is after
    inputs = random_inputs(graph)
    (found,), (right,) = ([run_graph(g, inputs)[o] for o in g.outputs] for g in (after, graph))
    np.testing.assert_array_equal(found, right)


@for_each(
    "graph",
    [
        _conv((9,), (3,), (1, 1), (1,), (2,)),
        _conv((9,), (3,), (1, 1), (2,), (1,)),
        _conv((9,), (3,), (1, 1), (2,), (3,)),
        _conv((9,), (1,), (0, 0), (2,), (2,)),  # one tap has no holes
        _conv((1,), (3,), (3, 2), (2,), (2,)),  # nothing is read but padding
        _conv((Var("N"),), (3,), (2, 2), (2,), (2,)),
    ],
)
def test_others_stay(graph: Graph) -> None:
    assert drop_unread_pixels(graph, ON_CPU) is graph


def test_a_gpu_reads_with_holes() -> None:
    graph = _conv((9,), (3,), (2, 2), (2,), (2,))
    assert drop_unread_pixels(graph, ON_GPU) is graph
