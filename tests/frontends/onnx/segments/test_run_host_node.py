from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from tilewright.core.errors import ExecutionError, Loc
from tilewright.frontends.onnx.context import OnnxNode
from tilewright.frontends.onnx.segments.host.call import HostCall
from tilewright.frontends.onnx.segments.run_host_node import run_host_node


def _node(*outputs: str) -> OnnxNode:
    proto = helper.make_node("SplitToSequence", ["x"], outputs, name="cut")
    return OnnxNode(proto, ("x",), Loc("m.onnx", "cut"), 18)


def _nested(graph: object, given: object) -> list[Any]:
    raise AssertionError("it has no nested graph")


def test_results_have_the_names_of_the_outputs() -> None:
    def op(call: HostCall) -> tuple[Any, ...]:
        return (call.inputs[0] + 1, call.inputs[0] + 2)

    found = run_host_node(op, _node("a", ""), [np.zeros(2)], _nested)
    assert found.keys() == {"a"}
    np.testing.assert_array_equal(found["a"], [1, 1])


def test_refusals_are_errors_of_the_node() -> None:
    def op(call: HostCall) -> tuple[Any, ...]:
        raise ValueError("too short")

    with pytest.raises(ExecutionError, match="too short") as caught:
        run_host_node(op, _node("a"), [None], _nested)
    assert caught.value.loc.node == "cut"


def test_every_named_output_is_given() -> None:
    with pytest.raises(ExecutionError, match="2 outputs, and gives 1"):
        run_host_node(lambda call: (1,), _node("a", "b"), [None], _nested)
