"""Gradients as results of a graph: by inputs and weights, of whole models, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tests.differential.native import check_native, random_inputs
from tests.models import convnet, mlp, transformer
from tilewright.autodiff.gradient_graph import gradient_graph, opened, with_parameters
from tilewright.core.errors import ConfigError
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.text import print_graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types


def graph_of(model: onnx.ModelProto) -> Graph:
    return import_onnx(model)


def weights_of(graph: Graph) -> list[str]:
    return [c.name for c in graph.constants if c.type.dtype.is_float and c.type.rank]


@pytest.mark.parametrize("model", [mlp, convnet, transformer])
def test_whole_models(model: Callable[[], onnx.ModelProto]) -> None:
    """By all weights at once, against how the results change when all of them move."""
    graph = graph_of(model())
    names = weights_of(graph)
    whole = gradient_graph(graph, names, graph.outputs[0])
    verify_graph(whole)
    check_types(whole)
    given = random_inputs(whole, {})
    check_native(whole, given, scale=20)
    found = run_graph(whole, given)
    rng, step = np.random.default_rng(0), 1e-3
    open_graph = with_parameters(graph, names)
    data = {c.name: c.data for c in graph.constants}
    ways = {n: rng.uniform(-1, 1, data[n].shape).astype(np.float32) for n in names}
    sides = []
    for sign in (1, -1):
        moved = {n: (data[n] + sign * step * ways[n]).astype(np.float32) for n in names}
        y = run_graph(open_graph, {**given, **moved})[graph.outputs[0]]
        sides.append(float(y.astype(np.float64).sum()))
    slope = sum(float((found[f"grad_{n}"] * ways[n]).astype(np.float64).sum()) for n in names)
    np.testing.assert_allclose(slope, (sides[0] - sides[1]) / (2 * step), rtol=0.05, atol=0.05)


def test_what_does_not_matter_has_the_gradient_zero() -> None:
    graph = graph_of(mlp())
    assert gradient_graph(graph, ["x"]).outputs == (*graph.outputs, "grad_x")
    last = gradient_graph(graph, ["b2"])
    (dx,) = run_graph(last, random_inputs(last, {}))["grad_b2"].reshape(1, -1)
    np.testing.assert_allclose(dx, 0, atol=1e-6)  # probabilities sum to one


def test_opened_graphs_keep_everything() -> None:
    graph = graph_of(convnet())
    assert print_graph(opened(graph).graph(*graph.outputs)) == print_graph(graph)


def test_weights_as_inputs() -> None:
    graph = with_parameters(graph_of(mlp()), ["w2"])
    assert [v.name for v in graph.inputs] == ["x", "w2"]
    assert "w2" not in graph.constant_by_name


def test_refusals() -> None:
    graph = graph_of(mlp())
    with pytest.raises(ConfigError, match="no input or weight named 'w3'") as error:
        gradient_graph(graph, ["w3"])
    assert "w1" in str(error.value)
    with pytest.raises(ConfigError, match="no result named 'loss'"):
        gradient_graph(graph, ["w1"], "loss")
    with pytest.raises(ConfigError, match="nothing to differentiate by"):
        gradient_graph(graph, [])
    with pytest.raises(ConfigError, match="no constant named 'x'"):
        with_parameters(graph, ["x"])
    two = gradient_graph(graph, ["w1"])
    with pytest.raises(ConfigError, match="has 2 results"):
        gradient_graph(two, ["w1"])
