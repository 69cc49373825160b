from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.conv.conv import ConvAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.tensor.padding import PadAttrs
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.conv.fold_pad_into_conv import fold_pad_into_conv

FIRST, LAST = "channels_first", "channels_last"


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed: int) -> None:
    graph = random_graph(seed)
    assert_same_results(graph, fold_pad_into_conv(graph, ON_CPU))


def _exprs(amounts: tuple[Expr | int, ...]) -> tuple[Expr, ...]:
    return tuple(const(n) if isinstance(n, int) else n for n in amounts)


def _padded(
    before: tuple[Expr | int, ...],
    after: tuple[Expr | int, ...],
    layout: str = FIRST,
    value: float = 0,
    mode: str = "constant",
    given: float | None = None,
) -> Graph:
    """A convolution of an image of 6 x 5 with so much around it, that itself pads (1, 0, 2, 1)."""
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, *((2, 3, 6, 5) if layout == FIRST else (2, 6, 5, 3))))
    filler = [] if given is None else [g.constant(np.array(given, np.float32))]
    amounts = PadAttrs(_exprs(before), _exprs(after), mode, value)
    y = g.add("pad", x, *filler, attrs=amounts)
    channels = g.type(y).shape[1 if layout == FIRST else -1]
    shape = (4, int(str(channels)), 3, 2)
    weights = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    values = {"strides": (2, 1), "pads": (1, 0, 2, 1), "dilations": (1, 1), "layout": layout}
    return g.graph(g.add("conv", y, g.constant(weights), attrs=make_attrs("conv", values)))


@for_each(
    ("graph", "pads"),
    [
        (_padded((0, 0, 0, 0), (0, 0, 1, 1)), (1, 0, 3, 2)),
        (_padded((0, 0, 1, 0), (0, 0, 0, 0)), (2, 0, 2, 1)),
        (_padded((0, 2, 1, 0), (0, 1, 3, 0), LAST), (3, 1, 3, 4)),
        (_padded((0, 0, 1, 0), (0, 0, 0, 0), value=7, given=0.0), (2, 0, 2, 1)),
    ],
)
def test_the_convolution_pads(graph: Graph, pads: tuple[int, ...]) -> None:
    after = dce(fold_pad_into_conv(graph, ON_CPU), ON_CPU)
    (node,) = after.nodes
    assert isinstance(node.attrs, ConvAttrs)
    assert node.attrs.pads == pads
    assert_same_results(graph, after)


@pytest.mark.parametrize(
    "graph",
    [
        pytest.param(_padded((0, 1, 1, 0), (0, 0, 0, 0)), id="channels"),
        pytest.param(_padded((1, 0, 1, 1), (0, 0, 0, 0)), id="batch"),
        pytest.param(_padded((0, 0, -1, 0), (0, 0, 0, 0)), id="cut off"),
        pytest.param(_padded((0, 0, 1, 0), (0, 0, 0, 0), value=1), id="ones"),
        pytest.param(_padded((0, 0, 1, 0), (0, 0, 0, 0), given=2.0), id="twos"),
        pytest.param(_padded((0, 0, 1, 0), (0, 0, 0, 0), mode="edge"), id="edges"),
        pytest.param(_padded((0, 0, Var("n"), 0), (0, 0, 0, 0)), id="as many as is said later"),
    ],
)
def test_other_pads_stay(graph: Graph) -> None:
    assert [n.op for n in fold_pad_into_conv(graph, ON_CPU).nodes] == ["pad", "conv"]


def test_what_others_read_stays() -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 1, 2, 4, 4))
    zero, one = const(0), const(1)
    y = g.add("pad", x, attrs=PadAttrs((zero,) * 4, (zero, zero, one, one)))
    weights = g.constant(np.ones((2, 2, 2, 2), np.float32))
    values = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
    graph = g.graph(g.add("conv", y, weights, attrs=make_attrs("conv", values)), y)
    assert_same_results(graph, fold_pad_into_conv(graph, ON_CPU))


def test_other_operators_stay() -> None:
    """Those that have no operand, and windows that spread rather than gather."""
    g = GraphBuilder("f")
    zero, one = const(0), const(1)
    ones = g.add("full", attrs=FullAttrs((one, const(2), const(3)), 1.0, F32))
    y = g.add("pad", ones, attrs=PadAttrs((zero,) * 3, (zero, zero, one)))
    weights = g.constant(np.ones((2, 2, 2), np.float32))
    values = {"strides": (1,), "pads": (0, 0), "dilations": (1,)}
    spread = make_attrs("conv_transpose", {**values, "output_padding": (0,)})
    wide = g.add("conv_transpose", y, weights, attrs=spread)
    graph = g.graph(g.add("conv", wide, weights, attrs=make_attrs("conv", values)))
    after = fold_pad_into_conv(graph, ON_CPU)
    assert [n.op for n in after.nodes] == ["full", "pad", "conv_transpose", "conv"]
    assert_same_results(graph, after)
