from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.conv.skip_padding_taps import skip_padding_taps


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    graph = random_graph(seed)
    assert_same_results(graph, skip_padding_taps(graph, ON_CPU))


def _conv(size: object, taps: int, apart: int, worst: float = 1.0, constant: bool = True) -> Graph:
    g = GraphBuilder("f")
    pad = apart * (taps - 1) // 2
    weights = np.ones((4, 3, taps, taps), np.float32)
    weights.flat[0] = worst
    values = {"strides": (1, 1), "pads": (pad,) * 4, "dilations": (apart,) * 2}
    x = g.input("x", tensor(F32, 2, 3, size, size))
    w = g.constant(weights) if constant else g.input("w", tensor(F32, *weights.shape))
    return g.graph(g.add("conv", x, w, attrs=make_attrs("conv", values)))


@for_each("graph", [_conv(16, 5, 4), _conv(20, 3, 4), _conv(6, 3, 1)])
def test_windows_that_are_large_beside_the_image_skip(graph: Graph) -> None:
    after = skip_padding_taps(graph, ON_CPU)
    verify_graph(after)
    (n,) = after.nodes
    assert isinstance(n.attrs, ConvAttrs)
    assert n.attrs.skips_padding
    assert skip_padding_taps(after, ON_CPU) is after
    assert_same_results(graph, after)


@for_each(
    "graph",
    [
        _conv(56, 3, 1),  # little is to be gained
        _conv(16, 1, 1),
        _conv(Var("N"), 5, 4),
        _conv(16, 5, 4, worst=np.inf),
        _conv(16, 5, 4, constant=False),
    ],
)
def test_others_stay(graph: Graph) -> None:
    assert skip_padding_taps(graph, ON_CPU) is graph
