from __future__ import annotations

import numpy as np

from tests.differential.native import random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
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
from tilewright.passes.conv.trim_padding_taps import trim_padding_taps


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    graph = random_graph(seed)
    assert_same_results(graph, trim_padding_taps(graph, ON_CPU))


def _conv(
    sizes: tuple[object, ...],
    kernel: tuple[int, ...],
    pads: tuple[int, ...],
    strides: tuple[int, ...] = (),
    dilations: tuple[int, ...] = (),
    layout: str = "channels_first",
    worst: float = 1.0,
) -> Graph:
    g = GraphBuilder("f")
    ones = (1,) * len(sizes)
    shape = (2, 3, *sizes) if layout == "channels_first" else (2, *sizes, 3)
    x = g.input("x", tensor(F32, *shape))
    weights = np.random.default_rng(0).standard_normal((4, 3, *kernel)).astype(np.float32)
    weights.flat[0] *= worst
    values = {
        "strides": strides or ones,
        "pads": pads,
        "dilations": dilations or ones,
        "layout": layout,
    }
    return g.graph(g.add("conv", x, g.constant(weights), attrs=make_attrs("conv", values)))


@for_each(
    ("graph", "kernel", "pads"),
    [
        (_conv((1,), (3,), (1, 1)), (1,), (0, 0)),
        (_conv((2,), (3,), (1, 1), strides=(2,)), (2,), (0, 1)),
        (_conv((1, 5), (5, 3), (2, 1, 2, 1)), (1, 3), (0, 1, 0, 1)),
        (_conv((2,), (3,), (3, 3), dilations=(3,), layout="channels_last"), (1,), (0, 0)),
        (_conv((1,), (4,), (3, 0)), (1,), (0, 0)),
    ],
)
def test_weights_that_meet_padding_alone_go(
    graph: Graph, kernel: tuple[int, ...], pads: tuple[int, ...]
) -> None:
    after = trim_padding_taps(graph, ON_CPU)
    verify_graph(after)
    check_types(after)
    (n,) = after.nodes
    assert after.constant_by_name[n.inputs[1]].data.shape[2:] == kernel
    assert n.attrs.pads == pads
    assert trim_padding_taps(after, ON_CPU) is after
    inputs = random_inputs(graph)
    (found,), (right,) = ([run_graph(g, inputs)[o] for o in g.outputs] for g in (after, graph))
    np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)


@for_each(
    "graph",
    [
        _conv((3,), (3,), (1, 1)),
        _conv((Var("N"),), (3,), (1, 1)),
        _conv((2,), (3,), (2, 2), strides=(3,)),  # the middle alone meets none
        _conv((1,), (3,), (1, 1), worst=np.inf),
    ],
)
def test_others_stay(graph: Graph) -> None:
    assert trim_padding_taps(graph, ON_CPU) is graph
