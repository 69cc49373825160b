from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import random_inputs
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.build import GraphBuilder
from tilewright.ops.check import check_types
from tilewright.ops.conv import ConvAttrs
from tilewright.ops.evaluate import run_graph
from tilewright.passes.winograd import winograd


def _conv(size: int, channels: int = 32, filters: int = 40, **attrs: object) -> Graph:
    settings = {
        "strides": (1, 1),
        "pads": (1, 1, 1, 1),
        "dilations": (1, 1),
        "layout": "channels_last",
        **attrs,
    }
    rng = np.random.default_rng(size)
    g = GraphBuilder("convolution")
    x = g.input("x", tensor(F32, Var("N"), size, size + 1, channels))
    w = g.constant(rng.standard_normal((filters, channels, 3, 3), dtype=np.float32) / 16, "w")
    y = g.add("conv", x, w, attrs=ConvAttrs(**settings))  # type: ignore[arg-type]
    return g.graph(g.add("relu", y))


@pytest.mark.parametrize("size", [1, 5, 8])
def test_convolutions_become_matrix_products(size: int) -> None:
    graph = _conv(size)
    after = winograd(graph)
    verify_graph(after)
    check_types(after)
    assert {"winograd_input", "matmul", "winograd_output"} <= {n.op for n in after.nodes}
    inputs = random_inputs(graph, {"N": 2})
    expected = run_graph(graph, inputs)[graph.outputs[0]]
    found = run_graph(after, inputs)[after.outputs[0]]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("size", [6, 7])
def test_natively(size: int) -> None:
    graph = _conv(size)
    inputs = random_inputs(graph, {"N": 3})
    expected = run_graph(graph, inputs)[graph.outputs[0]]
    model = compile(graph, cache=False)
    assert "winograd_input" in model.explain()
    found = model.run(inputs)[graph.outputs[0]]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "attrs",
    [
        {"strides": (2, 2)},
        {"dilations": (2, 2)},
        {"channels": 8},
        {"filters": 8},
    ],
)
def test_others_stay(attrs: dict[str, object]) -> None:
    graph = _conv(8, **attrs)  # type: ignore[arg-type]
    assert winograd(graph) is graph
