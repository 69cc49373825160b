from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tests.passes.random_graphs import SEEDS, assert_same_results, random_graph
from tilewright.core.dtypes import F32
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.canonicalize.name_outputs import name_outputs
from tilewright.passes.fuse import fuse
from tilewright.passes.memory.copy_aliased_outputs import copy_aliased_outputs


@for_each("seed", SEEDS)
def test_random_graphs_keep_their_meaning(seed):
    graph = copy_aliased_outputs(random_graph(seed), ON_CPU)
    names = [f"out{i}" for i in range(len(graph.outputs))]
    after = name_outputs(graph, names)
    assert_same_results(graph, after)
    assert list(after.outputs) == names
    assert name_outputs(after, names) is after


def test_names_that_are_taken_move_aside():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2))
    one = g.constant(np.ones(2, np.float32), "one")
    y = g.add("add", x, one, name="y")
    z = g.add("relu", y, name="z")
    after = name_outputs(fuse(g.graph(z, g.add("exp", y)), ON_CPU), ["y", "one"])
    verify_graph(after)
    assert after.outputs == ("y", "one")
    swapped = name_outputs(after, ["one", "y"])
    verify_graph(swapped)
    assert swapped.producer["one"].op == after.producer["y"].op


def test_an_input_keeps_its_name():
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, 2))
    graph = g.graph(g.add("identity", x, name="copy"))
    assert name_outputs(graph, ["x"]) is graph


def test_a_name_is_given_once():
    g = GraphBuilder("f")
    y = g.add("relu", g.input("x", tensor(F32, 2)), name="y")
    graph = copy_aliased_outputs(g.graph(y, y), ON_CPU)
    after = name_outputs(graph, ["y", "y"])
    verify_graph(after)
    assert after.outputs[0] == "y"
    assert len(set(after.outputs)) == 2
