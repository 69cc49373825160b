"""Operators that ONNX defines by others."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.core.errors import NOWHERE
from tilewright.frontends.onnx.context import OnnxNode
from tilewright.frontends.onnx.functions import body_nodes, function_body
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ir.types import tensor
from tilewright.ops.interpret import run_graph


def _node(op: str, opset: int = 20, domain: str = "", **attrs: object) -> OnnxNode:
    proto = helper.make_node(op, ["x"], ["y"], domain=domain, **attrs)
    return OnnxNode(proto, ("x",), NOWHERE, opset)


def test_what_is_no_function() -> None:
    assert function_body(_node("Conv"), [tensor(F32, 1)]) is None
    assert function_body(_node("Nothing"), []) is None
    assert function_body(_node("Relu", domain="com.x"), []) is None


def test_defaults_are_filled_in() -> None:
    n = _node("HannWindow")
    body = function_body(n, [None])
    assert body is not None
    nodes = body_nodes(body, n.proto)
    assert not any(a.ref_attr_name for node in nodes for a in node.attribute)
    casts = [a.i for node in nodes for a in node.attribute if a.name == "to"]
    assert TensorProto.FLOAT in casts
    given = _node("HannWindow", output_datatype=TensorProto.DOUBLE)
    body = function_body(given, [None])
    assert body is not None
    casts = [
        a.i for node in body_nodes(body, given.proto) for a in node.attribute if a.name == "to"
    ]
    assert TensorProto.DOUBLE in casts


def test_body_that_depends_on_types() -> None:
    body = function_body(_node("Softmax", 13), [tensor(F32, Var("n"), 3)])
    assert body is not None
    assert "Exp" in [node.op_type for node in body.node]


def test_expanded_in_a_model() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4, 5])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=[0, 2, 3])
    graph = helper.make_graph([node], "g", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    data = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    found = run_graph(import_onnx(model), {"x": data})["y"]
    axes = (0, 2, 3)
    expected = (data - data.mean(axes, keepdims=True)) / (data.std(axes, keepdims=True) + 1e-9)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
