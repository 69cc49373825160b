from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Constant, Graph, Node, Value
from tilewright.ir.types import SequenceType, tensor

T = tensor(F32, Var("N"), Var("M") + Var("K"))
ADD = Node("add", ("x", "c"), ("y",), (T,))
SPLIT = Node("topk", ("y", "y", ""), ("a", "b"), (T, tensor(F32)))
GRAPH = Graph(
    "f",
    (Value("s", SequenceType(T)), Value("x", T)),
    (Constant("c", tensor(F32), np.float32(1)),),
    (ADD, SPLIT),
    ("b", "y"),
)


def test_lookups():
    assert set(GRAPH.types) == {"s", "x", "c", "y", "a", "b"}
    assert GRAPH.producer == {"y": ADD, "a": SPLIT, "b": SPLIT}
    assert GRAPH.consumers["y"] == (SPLIT,)
    assert "a" not in GRAPH.consumers
    assert GRAPH.constant_by_name["c"].data == 1
    assert GRAPH.tensor_type("b") == tensor(F32)
    assert (SPLIT.name, SPLIT.type) == ("a", T)


def test_symbols_are_those_of_the_inputs_in_order():
    assert GRAPH.symbols() == ("N", "K", "M")


def test_a_changed_graph_has_lookups_of_its_own():
    assert "y" in GRAPH.types
    shorter = GRAPH.with_nodes((ADD,))
    assert "a" not in shorter.types
    assert shorter.consumers.get("y") is None


def test_walk_enters_regions():
    inner = replace(GRAPH, nodes=(ADD,))
    outer = GRAPH.with_nodes((replace(SPLIT, regions=(inner, inner)),))
    assert [n.op for n in outer.walk()] == ["topk", "add", "add"]


def test_nodes_compare_by_value_and_graphs_by_identity():
    assert replace(ADD) == ADD
    assert hash(replace(ADD)) == hash(ADD)
    assert replace(GRAPH) != GRAPH
    with pytest.raises(AttributeError):
        ADD.op = "sub"  # type: ignore[misc]
