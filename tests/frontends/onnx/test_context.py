"""What converters see of a node and of the graph."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, helper

from tests.for_each import for_each
from tilewright.arith.expr import const
from tilewright.core.dtypes import BF16, BOOL, F32, I64, DType
from tilewright.core.errors import FrontendError, Loc, UnsupportedError
from tilewright.frontends.onnx.context import (
    OnnxContext,
    OnnxNode,
    axes_of,
    identifier,
    simple,
)
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder


def _node(proto: NodeProto, *inputs: str) -> OnnxNode:
    return OnnxNode(proto, inputs, Loc("m.onnx", "here"), 20)


@pytest.fixture
def c() -> OnnxContext:
    return OnnxContext(GraphBuilder("g"), 20)


def test_attributes_and_defaults() -> None:
    proto = helper.make_node(
        "X",
        [],
        ["y", "", "z"],
        i=3,
        f=0.5,
        s="text",
        ints=[1, 2],
        floats=[0.5],
        strings=["a", "b"],
        to=TensorProto.BFLOAT16,
        t=helper.make_tensor("t", TensorProto.INT64, [2], [7, 8]),
    )
    n = _node(proto)
    assert (n.int_attr("i"), n.float_attr("f"), n.str_attr("s")) == (3, 0.5, "text")
    assert (n.ints_attr("ints"), n.floats_attr("floats")) == ((1, 2), (0.5,))
    assert n.strs_attr("strings") == ("a", "b")
    assert n.dtype_attr("to") == BF16
    assert list(n.tensor_attr("t")) == [7, 8]
    assert (n.int_attr("none", 4), n.ints_attr("none", (1,)), n.str_attr("none", "d")) == (
        4,
        (1,),
        "d",
    )
    assert n.dtype_attr("none", F32) == F32
    assert (n.n_outputs, n.wants(0), n.wants(1), n.wants(2), n.wants(3)) == (
        3,
        True,
        False,
        True,
        False,
    )


def test_wrong_attributes() -> None:
    n = _node(helper.make_node("X", [], ["y"], i=3))
    with pytest.raises(FrontendError, match="X: attribute axis is missing") as caught:
        n.int_attr("axis")
    assert caught.value.loc.node == "here"
    with pytest.raises(FrontendError, match="attribute i is INT, not FLOAT"):
        n.float_attr("i")


def test_absent_inputs() -> None:
    n = _node(helper.make_node("X", ["a", "", "b"], ["y"]), "a", "", "b")
    assert (n.input(1), n.has_input(1), n.input(7)) == ("", False, "")
    assert n.required(2) == "b"
    with pytest.raises(FrontendError, match="X has no input 1"):
        n.required(1)


def test_known_values(c: OnnxContext) -> None:
    k = c.g.constant(np.array([[1, 2], [3, 4]]), "k")
    x = c.g.input("x", tensor(I64, 2))
    n = _node(helper.make_node("Reshape", ["k", "x"], ["y"]), k, x)
    assert c.known_ints(n, 0) == tuple(const(i) for i in (1, 2, 3, 4))
    assert c.static_ints(n, 0) == (1, 2, 3, 4)
    assert c.constant_of(k) is not None
    assert c.constant_of(x) is None
    with pytest.raises(UnsupportedError) as caught:
        c.known_ints(n, 1)
    assert caught.value.code == "onnx.data-dependent"
    assert caught.value.loc == Loc("m.onnx", "here")


def test_long_constants_are_known_too(c: OnnxContext) -> None:
    k = c.g.constant(np.arange(5000), "k")
    n = _node(helper.make_node("X", ["k"], ["y"]), k)
    assert c.static_ints(n, 0) == tuple(range(5000))


def test_scalar(c: OnnxContext) -> None:
    k, v = c.g.constant(np.array([2.5])), c.g.constant(np.ones(3))
    n = _node(helper.make_node("X", ["k", "v"], ["y"]), k, v)
    assert c.scalar(n, 0) == 2.5
    with pytest.raises(FrontendError, match=r"input 1 .v. has 3 elements, not one"):
        c.scalar(n, 1)


def test_axes_from_attribute_or_input(c: OnnxContext) -> None:
    k = c.g.constant(np.array([0, -1]))
    x = c.g.input("x", tensor(F32, 2, 3))
    assert axes_of(c, _node(helper.make_node("X", ["x"], ["y"], axes=[1]), x)) == (1,)
    assert axes_of(c, _node(helper.make_node("X", ["x", "k"], ["y"]), x, k)) == (0, -1)
    assert axes_of(c, _node(helper.make_node("X", ["x"], ["y"]), x)) is None


def test_numbers_that_are_no_constants_of_a_type(c: OnnxContext) -> None:
    for number in (float("inf"), float("nan")):
        with pytest.raises(FrontendError, match="is no i64"):
            c.constant(number, I64)
    assert c.type(c.constant(float("inf"), F32)) == tensor(F32)


@pytest.mark.parametrize("dtype", [BOOL, F32])
def test_sizes_are_integers(c: OnnxContext, dtype: DType) -> None:
    n = _node(helper.make_node("X", ["s"], ["y"]), c.constant([1, 1], dtype))
    with pytest.raises(FrontendError, match="input 0 is ") as caught:
        c.static_ints(n, 0)
    assert "integers" in str(caught.value)


def test_simple_names_and_locates(c: OnnxContext) -> None:
    x = c.g.input("x", tensor(F32, 2))
    n = _node(helper.make_node("Relu", ["x"], ["layer/relu:0"]), x)
    assert simple("relu")(c, n) == ("layer_relu_0",)
    assert c.g.nodes[-1].loc == Loc("m.onnx", "here")


@for_each(
    ("name", "clean"), [("a.b_c1", "a.b_c1"), ("/x/Add::0", "_x_Add__0"), ("é", "_"), ("", "v")]
)
def test_identifier(name: str, clean: str) -> None:
    assert identifier(name) == clean
