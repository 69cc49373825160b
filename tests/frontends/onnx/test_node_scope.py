from __future__ import annotations

from onnx import helper

from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import Loc
from tilewright.frontends.onnx.context import OnnxContext, OnnxNode
from tilewright.frontends.onnx.node_scope import NodeScope, traced
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder


def test_nodes_are_named_and_located_like_the_converted_one() -> None:
    g = GraphBuilder("f")
    loc = Loc("model.onnx", node="here")
    n = OnnxNode(helper.make_node("Any", ["x"], ["result"]), ("x",), loc, 20)
    x = traced(OnnxContext(g, 20), n, g.input("x", tensor(F32, 4, 1)))
    y = (x + 1).cast(I64).reshape(x.shape[:1])
    assert [node.op for node in g.nodes] == ["add", "cast", "reshape"]
    assert {node.loc for node in g.nodes} == {loc}
    assert all(node.name.startswith("result") for node in g.nodes)
    assert y.reshape(y.shape) == y
    assert y.cast(I64) == y


def test_constants_and_several_outputs() -> None:
    g = GraphBuilder("f")
    n = OnnxNode(helper.make_node("Any", ["x"], ["y"]), ("x",), Loc("m"), 20)
    scope = NodeScope(OnnxContext(g, 20), n)
    number = traced(scope.c, n, g.input("x", tensor(F32, 4))).number(2).name
    assert scope.constant_data(number) == 2
    assert scope.constant_data("x") is None
    assert scope.add_many("relu", "x", names=("z",)) == ("z",)
