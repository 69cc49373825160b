"""Nodes in order of definition."""

from __future__ import annotations

import random

import pytest
from onnx import TensorProto, helper

from tests.for_each import for_each
from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.model.toposort import node_name, ordered

CHAIN = [helper.make_node("Relu", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(8)]


def test_sorted_stays_and_unsorted_is_sorted() -> None:
    assert ordered(CHAIN, {"v0"}, "m") == CHAIN
    shuffled = list(CHAIN)
    random.Random(3).shuffle(shuffled)
    assert ordered(shuffled, {"v0"}, "m") == CHAIN


def test_absent_inputs_and_outputs_are_no_values() -> None:
    nodes = [
        helper.make_node("Clip", ["x", "", "m"], ["y"]),
        helper.make_node("Dropout", ["y"], ["z", ""]),
        helper.make_node("Dropout", ["y"], ["w", ""]),
    ]
    assert len(ordered(nodes, {"x", "m"}, "m")) == 3


def test_nested_graphs_read_from_outside() -> None:
    value = helper.make_tensor_value_info("t", TensorProto.FLOAT, [1])
    inner = helper.make_graph([helper.make_node("Add", ["late", "late"], ["t"])], "g", [], [value])
    branch = helper.make_node("If", ["c"], ["r"], then_branch=inner, else_branch=inner)
    late = helper.make_node("Relu", ["x"], ["late"])
    assert ordered([branch, late], {"c", "x"}, "m") == [late, branch]
    with pytest.raises(FrontendError, match="'late'"):
        ordered([branch], {"c", "x"}, "m")


@for_each(
    ("nodes", "code"),
    [
        ([helper.make_node("Relu", ["q"], ["y"], name="here")], "onnx.undefined-value"),
        ([helper.make_node("Relu", ["y"], ["y"], name="here")], "onnx.cycle"),
        ([helper.make_node("Relu", ["x"], ["x"], name="here")], "onnx.duplicate-value"),
        ([helper.make_node("Split", ["x"], ["y", "y"], name="here")], "onnx.duplicate-value"),
        (
            [
                helper.make_node("Relu", ["b"], ["a"], name="here"),
                helper.make_node("Relu", ["a"], ["b"]),
            ],
            "onnx.cycle",
        ),
    ],
)
def test_wrong_graphs(nodes: list, code: str) -> None:
    with pytest.raises(FrontendError) as caught:
        ordered(nodes, {"x"}, "model.onnx")
    assert caught.value.code == code
    assert caught.value.loc.node == "here"
    assert caught.value.loc.file == "model.onnx"


def test_names_for_messages() -> None:
    assert node_name(helper.make_node("Relu", ["x"], ["y"])) == "Relu(y)"
    assert node_name(helper.make_node("Relu", ["x"], ["y"], name="r1")) == "r1"
