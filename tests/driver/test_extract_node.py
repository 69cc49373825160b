from __future__ import annotations

import numpy as np

from tests.models import mlp
from tilewright.core.dtypes import F32
from tilewright.driver.compile_graph import optimized_graph
from tilewright.driver.extract_node import extract_node
from tilewright.driver.options import make_options
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types


def test_a_node_alone_means_what_it_means_in_the_model() -> None:
    graph = optimized_graph(mlp("N"), make_options())
    node, x = graph.nodes[0], np.random.default_rng(0).standard_normal((3, 16)).astype(np.float32)
    known = {"x": x, **{c.name: c.data for c in graph.constants}}
    arrays = [known[name] for name in node.inputs]
    types = [graph.types[name] for name in node.inputs]
    part, inputs = extract_node(node, arrays, types, {"N": 3}, frozenset(graph.constant_by_name))
    verify_graph(part)
    check_types(part)
    assert inputs.keys() == {"x", "size.N"}
    assert {c.name for c in part.constants} == {*node.inputs} - {"x"}
    (y,) = run_graph(part, inputs).values()
    w, b = (known[name] for name in node.inputs[1:])
    np.testing.assert_allclose(y, np.maximum(x @ w + b, 0), rtol=1e-5, atol=1e-6)


def test_a_scalar_stays_one() -> None:
    g = GraphBuilder("g")
    x, s = g.input("x", tensor(F32, 3)), g.input("s", tensor(F32))
    graph = optimized_graph(g.graph(g.add("mul", x, s)), make_options())
    (node,) = graph.nodes
    types = [graph.types[name] for name in node.inputs]
    arrays = [np.ones(3, np.float32), np.float32(2).reshape(())]
    part, inputs = extract_node(node, arrays, types, {}, frozenset())
    (y,) = run_graph(part, inputs).values()
    np.testing.assert_array_equal(y, np.full(3, 2))


def test_without_constants_everything_is_an_input() -> None:
    graph = optimized_graph(mlp(2), make_options())
    node = graph.nodes[0]
    types = [graph.types[name] for name in node.inputs]
    arrays = [np.zeros(t.static_shape, np.float32) for t in types]  # type: ignore[union-attr]
    part, inputs = extract_node(node, arrays, types, {}, frozenset())
    assert part.constants == ()
    assert tuple(inputs) == tuple(dict.fromkeys(node.inputs))
