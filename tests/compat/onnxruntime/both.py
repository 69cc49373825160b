"""The same call on ONNX Runtime and on the drop-in, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import onnxruntime as theirs
from onnx import TensorProto, helper

import tilewright.compat.onnxruntime as ours

ENGINES = (theirs, ours)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Mapping[str, np.ndarray] | None = None,
    **more: Any,
) -> onnx.ModelProto:
    """A model of opset 17."""
    tensors = [onnx.numpy_helper.from_array(a, name) for name, a in (weights or {}).items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, tensors)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, **more)


def tensor(name: str, shape: Sequence[Any] | None, element: int = TensorProto.FLOAT) -> Any:
    """An input or output that is a tensor."""
    return helper.make_tensor_value_info(name, element, shape)


def affine() -> onnx.ModelProto:
    """`z = x + y` and `o = z * w`, of a batch N; w may be given in place of its initializer."""
    return model(
        [
            helper.make_node("Add", ["x", "y"], ["z"], "sum"),
            helper.make_node("Mul", ["z", "w"], ["o"], "product"),
        ],
        [tensor("x", ["N", 3]), tensor("y", ["N", 3]), tensor("w", [3])],
        [tensor("z", ["N", 3]), tensor("o", ["N", 3])],
        {"w": np.array([1, 2, 3], np.float32)},
        producer_name="tests",
    )


def outcome(call: Callable[[ModuleType], Any], engine: ModuleType) -> tuple[str, Any, str]:
    """What a call gives: its value, or the name and text of its exception."""
    try:
        return "value", call(engine), ""
    except Exception as error:
        return type(error).__name__, None, str(error)


def assert_alike(call: Callable[[ModuleType], Any]) -> str:
    """Both engines give equal values, or raise exceptions of one name; our text."""
    (kind, value, text), (our_kind, our_value, our_text) = (outcome(call, e) for e in ENGINES)
    assert our_kind == kind, f"{text!r} there, {our_text or our_value!r} here"
    assert_equal(our_value, value)
    return our_text


def assert_equal(ours: Any, theirs: Any) -> None:
    """Values of the same types all the way down, arrays of the same elements."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, np.ndarray):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    elif isinstance(theirs, list | tuple):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            assert_equal(a, b)
    else:
        assert ours == theirs
