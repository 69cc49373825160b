from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import fx

from tests.frontends.torch.eager import imported
from tilewright.core.dtypes import F32, I32
from tilewright.core.errors import ExecutionError, UnsupportedError
from tilewright.frontends.torch.effects import checked_info, if_all_zero
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph


def test_a_result_is_given_only_if_all_is_well() -> None:
    g = GraphBuilder("g")
    x, info = g.input("x", tensor(F32, 2)), g.input("info", tensor(I32, 3))
    empty = g.input("none", tensor(I32, 0))
    graph = g.graph(if_all_zero(g, [info, empty], x))
    given = {"x": np.ones(2, np.float32), "none": np.zeros(0, np.int32)}
    (found,) = run_graph(graph, given | {"info": np.zeros(3, np.int32)}).values()
    np.testing.assert_array_equal(found, given["x"])
    with pytest.raises(ExecutionError, match="index 2 is outside"):
        run_graph(graph, given | {"info": np.array([0, 2, 0], np.int32)})


def test_solutions_are_checked() -> None:
    graph = imported(torch.linalg.inv, torch.eye(3))
    (x,) = graph.inputs
    found = run_graph(graph, {x.name: np.eye(3, dtype=np.float32)})
    np.testing.assert_array_equal(found[graph.outputs[-1]], np.eye(3))
    with pytest.raises(ExecutionError, match="is outside"):
        run_graph(graph, {x.name: np.ones((3, 3), np.float32)})


def test_compiled_solutions_are_checked() -> None:
    torch._dynamo.reset()
    inverse = torch.compile(torch.linalg.inv, backend="tilewright", fullgraph=True)
    x = torch.tensor([[2.0, 1.0], [1.0, 1.0]])
    torch.testing.assert_close(inverse(x), torch.linalg.inv(x))
    with pytest.raises(ExecutionError, match="is outside"):
        inverse(torch.ones(2, 2))


def test_other_effects_are_refused() -> None:
    graph = fx.Graph()
    token = graph.placeholder("token")
    node = graph.call_function(torch.add, (token, torch.ops.aten._print.default, "hello"))
    with pytest.raises(UnsupportedError, match="has an effect"):
        checked_info(node)
