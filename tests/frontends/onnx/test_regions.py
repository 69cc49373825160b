"""What a nested graph takes from outside becomes an operand, or a constant of its own."""

from __future__ import annotations

import numpy as np
from onnx import GraphProto, helper

from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.frontends.onnx.context import OnnxContext
from tilewright.frontends.onnx.regions import Captured, region_builder
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder


def nested(*reads: str) -> GraphProto:
    nodes = [helper.make_node("Neg", [name], [f"{name}_neg"]) for name in reads]
    return helper.make_graph(nodes, "nested", [], [])


def context() -> OnnxContext:
    g = GraphBuilder("outer")
    g.add_check(Var("N").eq(Var("M")), "equal")
    values = {"x": g.input("x", tensor(F32, Var("N"))), "w": g.constant(np.ones(3)), "none": ""}
    return OnnxContext(g, 21, values)


def test_operands_and_constants() -> None:
    c = context()
    captured = Captured.by(c, [nested("x", "w"), nested("x", "none", "elsewhere")])
    assert captured.names == ("x", "w", "none")
    assert captured.operands(c) == [c.values["x"]]
    g = region_builder(c, "a/b")
    values = captured.define(c, g)
    assert values["none"] == ""
    assert g.constant_data(values["w"]) is c.constant_of(c.values["w"])
    assert [v.name for v in g.inputs] == [values["x"]]
    assert g.name == "a_b"


def test_what_is_known_of_sizes_outside_is_known_inside() -> None:
    c = context()
    g = region_builder(c, "")
    assert g.equalities.of(tensor(F32, Var("N"))) == g.equalities.of(tensor(F32, Var("M")))
