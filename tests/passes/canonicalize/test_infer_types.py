from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, N, assert_same_results, random_graph, sample_inputs
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.core.errors import ConfigError, TypeCheckError
from tilewright.ir.graph.nodes import Graph, Value
from tilewright.ir.graph.text import print_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.infer_types import bind_dims, infer_types
from tilewright.passes.fuse import fuse


def _model() -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, Var("N"), 4))
    y = g.add("reshape", x, attrs=make_attrs("reshape", {"shape": (Var("N") * 2, 2)}))
    return g.graph(g.add("relu", y))


@for_each("seed", SEEDS)
def test_types_are_stable(seed):
    graph = random_graph(seed)
    assert infer_types(graph) is graph


@for_each("seed", SEEDS)
def test_bound_graphs_give_the_same(seed):
    graph = random_graph(seed)
    bound = bind_dims(graph, {"N": N})
    check_types(bound)
    assert not bound.symbols()
    inputs = sample_inputs(graph)
    old, new = run_graph(graph, inputs), run_graph(bound, inputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(old[name], new[name])


def test_new_input_types_reach_the_outputs():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 1, 4))
    graph = g.graph(g.add("relu", g.add("matmul", x, g.input("w", tensor(F32, 4, 5)))))
    x, w = graph.inputs
    after = infer_types(replace(graph, inputs=(Value("x", tensor(F32, 7, 4)), w)))
    assert after.types[after.outputs[0]] == tensor(F32, 7, 5)
    with pytest.raises(TypeCheckError, match="matmul"):
        infer_types(replace(graph, inputs=(Value("x", tensor(F32, 7, 3)), w)))


def test_attributes_are_bound_too():
    bound = bind_dims(_model(), {"N": 3})
    assert print_graph(bound) == (
        "graph @f(x: f32[3, 4]) {\n"
        "  %v: f32[6, 2] = reshape(%x) {shape=[6, 2]}\n"
        "  %v_1: f32[6, 2] = relu(%v)\n"
        "  return %v_1\n"
        "}\n"
    )


def test_groups_are_bound():
    bound = bind_dims(fuse(_model(), ON_CPU), {"N": 3})
    assert "N" not in print_graph(bound)
    check_types(bound)


def test_nothing_to_bind():
    graph = _model()
    assert bind_dims(graph, {}) is graph


def test_wrong_sizes():
    with pytest.raises(ConfigError, match=r"dims\.unknown") as error:
        bind_dims(_model(), {"M": 3})
    assert "one of N" in str(error.value)
    with pytest.raises(ConfigError, match=r"dims\.negative"):
        bind_dims(_model(), {"N": -1})


def test_results_agree_after_inference():
    graph = random_graph(3)
    assert_same_results(graph, infer_types(graph))
