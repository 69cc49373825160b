from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32, I64
from tilewright.frontends.onnx.evaluate_constant import computed
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ir.types import tensor
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import KNOWN_LIMIT, GraphBuilder
from tilewright.ops.tensor.creation import DimsAttrs


@pytest.fixture
def g() -> GraphBuilder:
    return GraphBuilder("g")


def test_arithmetic_on_constants(g: GraphBuilder) -> None:
    two, half = (g.constant(np.array([x], np.float32)) for x in (2.0, 0.5))
    unused = g.add("exp", g.input("x", tensor(F32, 3)))
    product = g.add("mul", g.add("add", two, half), two)
    found = computed(g, g.add("cast", product, attrs=CastAttrs(I64)))
    assert found is not None
    assert (found.dtype, list(found)) == (np.int64, [5])
    assert computed(g, unused) is None


def test_what_is_not_computed(g: GraphBuilder) -> None:
    x = g.input("x", tensor(F32, 1))
    one = g.constant(np.ones(1, np.float32))
    many = g.constant(np.ones(KNOWN_LIMIT + 1, np.float32))
    assert computed(g, x) is None
    assert computed(g, g.add("add", x, one)) is None
    assert computed(g, g.add("add", many, one)) is None
    size = g.add("dims", attrs=DimsAttrs((Var("n") + const(1),), (1,)))
    assert computed(g, size) is None


def test_a_range_from_a_float() -> None:
    like = helper.make_node("CastLike", ["zero", "end"], ["start"])
    node = helper.make_node("Range", ["start", "end", "step"], ["y"])
    held = [
        helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0]),
        helper.make_tensor("end", TensorProto.INT64, [], [5]),
        helper.make_tensor("step", TensorProto.INT64, [], [2]),
    ]
    out = helper.make_tensor_value_info("y", TensorProto.INT64, [3])
    graph = helper.make_graph([like, node], "g", [], [out], held)
    opset = [helper.make_opsetid("", 20)]
    found = import_onnx(helper.make_model(graph, opset_imports=opset, ir_version=9))
    assert [node.type for node in found.nodes if node.name == found.outputs[0]] == [tensor(I64, 3)]
