from __future__ import annotations

import numpy as np
import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.differential.native import random_inputs
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.build import GraphBuilder
from tilewright.ops.check import check_types
from tilewright.ops.evaluate import run_graph
from tilewright.passes.channels_last import channels_last


def _check(graph: Graph) -> Graph:
    after = channels_last(graph)
    verify_graph(after)
    check_types(after)
    inputs = random_inputs(graph)
    expected, found = run_graph(graph, inputs), run_graph(after, inputs)
    for old, new in zip(graph.outputs, after.outputs, strict=True):
        np.testing.assert_allclose(found[new], expected[old], rtol=1e-5, atol=1e-5)
    return after


@pytest.mark.parametrize("name", ["conv", "depthwise", "max_pool", "average_pool"])
def test_windows_move_their_channels_last(name: str) -> None:
    after = _check(KERNELS[name](5, 4, 6))
    windows = [n for n in after.nodes if hasattr(n.attrs, "layout")]
    assert windows
    assert all(n.attrs.layout == "channels_last" for n in windows)
    assert channels_last(after) is after


@pytest.mark.parametrize("rank", [1, 3])
def test_other_ranks(rank: int) -> None:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2, 3, *([5] * rank)))
    w = g.constant(np.random.default_rng(0).standard_normal((4, 3, *([2] * rank))).astype("f4"))
    one, none = (1,) * rank, (0,) * (2 * rank)
    attrs = make_attrs("conv", {"strides": one, "pads": none, "dilations": one})
    after = _check(g.graph(g.add("conv", x, w, attrs=attrs)))
    assert [n.op for n in after.nodes] == ["transpose", "conv", "transpose"]


def test_a_graph_without_windows_is_the_same_object() -> None:
    graph = KERNELS["matmul"](2, 3, 4)
    assert channels_last(graph) is graph
