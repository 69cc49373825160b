"""Single nodes: converted by their converters, or by what ONNX makes them of."""

from __future__ import annotations

from functools import partial

import pytest
from onnx import helper

from tests.frontends.onnx.segments.segmented_models import BRANCHES, parsed
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.core.errors import FrontendError, Loc, UnsupportedError
from tilewright.frontends.onnx.context import OnnxContext
from tilewright.frontends.onnx.convert_node import convert_node, nested_graph, onnx_node
from tilewright.frontends.onnx.model.read import read_model
from tilewright.frontends.onnx.segments.data_dependent import HostOnly
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder

HERE = Loc("m.onnx", "here")


def context() -> OnnxContext:
    g = GraphBuilder("g")
    c = OnnxContext(g, 21, nested=partial(nested_graph, read_model(BRANCHES)))
    c.values["x"] = g.input("x", tensor(F32, Var("n")))
    return c


def test_a_function_is_written_out() -> None:
    c = context()
    proto = helper.make_node("Celu", ["x"], ["y"], alpha=2.0)
    convert_node(c, proto, {"": 21}, HERE)
    assert "y" in c.values
    assert all(n.loc == HERE for n in c.g.nodes)


def test_what_runs_on_the_host_says_so() -> None:
    with pytest.raises(HostOnly):
        convert_node(context(), helper.make_node("SequenceConstruct", ["x"], ["s"]), {"": 21}, HERE)


def test_an_operator_that_nothing_knows() -> None:
    with pytest.raises(UnsupportedError, match="operator Bogus"):
        convert_node(context(), helper.make_node("Bogus", ["x"], ["y"]), {"": 21}, HERE)


def test_inputs_left_out_at_the_end_do_not_count() -> None:
    n = onnx_node(context(), helper.make_node("Clip", ["x", "", ""], ["y"]), {"": 21}, HERE)
    assert n.inputs == ("x",)
    assert n.opset == 21


def test_a_nested_graph_that_lacks_its_result() -> None:
    c = context()
    m = parsed("g (float[n] x) => (float[n] y) { y = Relu (x) }")
    model = read_model(m)
    (y,) = nested_graph(model, c, m.graph)
    assert c.type(y) == tensor(F32, Var("n"))
    del m.graph.node[:]
    with pytest.raises(FrontendError, match="output 'y' of a nested graph"):
        nested_graph(model, context(), m.graph)
