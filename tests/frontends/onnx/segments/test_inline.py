"""Nodes of functions and branches in the graph around them."""

from __future__ import annotations

import onnx.parser
from onnx import helper

from tilewright.frontends.onnx.segments.inline import branch_nodes, function_nodes


def test_a_branch_gives_its_results_the_names_outside() -> None:
    value = helper.make_tensor_value_info("inner", onnx.TensorProto.FLOAT, None)
    branch = helper.make_graph([helper.make_node("Relu", ["x"], ["inner"])], "b", [], [value])
    call = helper.make_node("If", ["c"], ["y"])
    relu, named = branch_nodes(branch, call)
    assert (relu.op_type, named.op_type) == ("Relu", "Identity")
    assert (named.input[0], named.output[0]) == ("inner", "y")


def test_values_of_a_function_get_names_of_their_own() -> None:
    body = onnx.parser.parse_function("""
        <domain: "d", opset_import: ["" : 21]>
        f (a, b) => (c, a) {
            t = Mul (a, b)
            c = Loop <body = g (int64 i, bool k) => (bool k2, float z) {
                k2 = Identity (k)
                z = Add (t, a)
            }> ()
        }
    """)
    first = function_nodes(body, helper.make_node("f", ["x", "x"], ["y", "w"], domain="d"))
    mul, loop, passed = first
    assert list(mul.input) == ["x", "x"]
    assert mul.output[0] == "y/t"
    assert loop.output[0] == "y"
    inner = loop.attribute[0].g
    assert list(inner.node[1].input) == ["y/t", "x"], "what it takes from outside is renamed"
    assert inner.node[0].input[0] == "k", "what is its own is not"
    assert (passed.input[0], passed.output[0]) == ("x", "w"), "an input may be a result"


def test_an_input_left_out_stays_so() -> None:
    body = onnx.parser.parse_function("""
        <domain: "d", opset_import: ["" : 21]>
        f (a, b) => (c) { c = Clip (a, b) }
    """)
    (clip,) = function_nodes(body, helper.make_node("f", ["x"], ["y"], domain="d"))
    assert list(clip.input) == ["x", ""]
