from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.core.dtypes import F32
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.canonicalize.cse import HASHED_BYTES, cse
from tilewright.passes.fuse import fuse


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = random_graph(seed)
    after = cse(graph, ON_CPU)
    assert_same_results(graph, after)
    assert cse(after, ON_CPU) is after


def test_equal_nodes_merge_through_their_operands():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2, 2))
    a, b = (g.add("exp", g.add("relu", x)) for _ in range(2))
    t, u = (g.add("softmax", x, attrs=make_attrs("softmax", {"axis": d})) for d in (0, 1))
    after = cse(g.graph(a, b, t, u), ON_CPU)
    assert [n.op for n in after.nodes] == ["relu", "exp", "softmax", "softmax"]
    assert after.outputs[0] == after.outputs[1]
    assert after.outputs[2] != after.outputs[3]


def _constants(*arrays: np.ndarray) -> int:
    g = GraphBuilder("f")
    names = [g.constant(a) for a in arrays]
    return len(cse(g.graph(*names), ON_CPU).constants)


def test_constants_merge_by_content():
    ones = np.ones(4, np.float32)
    assert _constants(ones, np.ones(4, np.float32)) == 1
    assert _constants(ones, np.ones((2, 2), np.float32)) == 2
    assert _constants(ones, np.ones(4, np.float64)) == 2
    assert _constants(np.zeros(1, np.float32), -np.zeros(1, np.float32)) == 2


def test_large_constants_merge_by_identity():
    large = np.ones(HASHED_BYTES, np.float32)
    assert _constants(large, large[:]) == 1
    assert _constants(large, large.copy()) == 2
    assert _constants(large, large[::-1]) == 2


def test_groups_are_left_alone():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2))
    graph = fuse(g.graph(g.add("exp", x), g.add("exp", x)), ON_CPU)
    assert cse(graph, ON_CPU) is graph
