"""The graph interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import ExecutionError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import bind_sizes, evaluate_node, run_graph, tensor_program
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.registry import get_op, op_table

N = Var("N")


@pytest.fixture
def graph() -> Graph:
    g = GraphBuilder("test")
    x = g.input("x", tensor(F32, N, 3))
    w = g.constant(np.arange(12, dtype=np.float32).reshape(3, 4), "w")
    y = g.add("matmul", x, w, name="y")
    z = g.add("cumsum", y, attrs=ScanAttrs(0), name="z")
    return g.graph(y, g.add("relu", z, name="r"))


def test_run_graph(graph: Graph) -> None:
    x = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    found = run_graph(graph, {"x": x})
    y = x @ graph.constants[0].data
    np.testing.assert_allclose(found["y"], y, rtol=1e-5)
    np.testing.assert_allclose(found["r"], np.maximum(np.cumsum(y, 0), 0), rtol=1e-5, atol=1e-5)


def test_nodes_one_by_one(graph: Graph) -> None:
    y, z, r = graph.nodes
    x = np.ones((2, 3), np.float32)
    (product,) = evaluate_node(y, [x, graph.constants[0].data], {"N": 2})
    (total,) = evaluate_node(z, [product], {"N": 2})
    (result,) = evaluate_node(r, [total], {"N": 2})
    np.testing.assert_allclose(result, np.cumsum(x @ graph.constants[0].data, 0))


def test_decomposed_operators_are_interpreted() -> None:
    """Every row has exactly one meaning, whichever form it takes."""
    for row in op_table().values():
        forms = (row.te, row.loops, row.decompose, row.region_types)
        assert sum(f is not None for f in forms) == 1, row.name


def test_absent_inputs_keep_their_places() -> None:
    g = GraphBuilder("test")
    x = g.input("x", tensor(F32, 3))
    high = g.constant(np.array(1, np.float32))
    y = g.add("clip", x, "", high)
    program = tensor_program(get_op("clip"), g.nodes[0], [g.type(x), None, g.type(high)])
    assert [t.name for t in program.inputs] == ["x0", "x2"]
    found = run_graph(g.graph(y), {"x": np.array([0, 1, 2], np.float32)})
    np.testing.assert_array_equal(found[y], [0, 1, 1])


def test_sizes() -> None:
    g = GraphBuilder("test")
    g.input("a", tensor(F32, N * 2))
    g.input("b", tensor(I64, N, 3))
    graph = g.graph()
    a, b = np.ones(8, np.float32), np.ones((4, 3), np.int64)
    assert bind_sizes(graph, {"a": a, "b": b}, {}) == {"N": 4}
    with pytest.raises(ExecutionError, match=r"'a' has shape \[7\], expected f32\[N \* 2\]"):
        bind_sizes(graph, {"a": a[:7], "b": b}, {})
    with pytest.raises(ExecutionError, match="'b' has shape"):
        bind_sizes(graph, {"a": a, "b": b[0]}, {})
    with pytest.raises(ExecutionError, match="'b' is not given"):
        bind_sizes(graph, {"a": a}, {})
