"""The interface of ONNX's tests: what it compiles, and what it says of devices."""

from __future__ import annotations

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

from tilewright.compat.onnx_backend import TilewrightBackend


def _difference() -> ModelProto:
    """`a - b` with a constant that older models also declare as an input."""
    values = [
        helper.make_tensor_value_info(k, TensorProto.FLOAT, [3]) for k in ("c", "a", "b", "y")
    ]
    nodes = [
        helper.make_node("Sub", ["a", "b"], ["d"]),
        helper.make_node("Mul", ["d", "c"], ["y"]),
    ]
    scale = numpy_helper.from_array(np.float32([1, 2, 3]), "c")
    graph = helper.make_graph(nodes, "difference", values[:3], values[3:], [scale])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def test_inputs_are_taken_in_the_order_of_the_model_without_its_constants() -> None:
    prepared = TilewrightBackend.prepare(_difference(), cache=False)
    (y,) = prepared.run([np.float32([5, 5, 5]), np.float32([1, 2, 3])])
    np.testing.assert_array_equal(y, np.float32([4, 6, 6]))


def test_only_the_processor_is_a_device() -> None:
    assert TilewrightBackend.supports_device("CPU")
    assert not TilewrightBackend.supports_device("CUDA")
