"""A model of many nodes, all kernels different: a planted mistake is not found by luck."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LAYERS = 12
WIDTH = 12


def width(layer: int) -> int:
    """The width that a layer gives."""
    return WIDTH + layer


def deep_model(layers: int = LAYERS, rows: int | str = 3) -> onnx.ModelProto:
    """Dense layers, each a little wider than the one before: five nodes a layer, and a softmax.

    Nodes are called `matmul_9, add_9, sigmoid_9, mul_9, tanh_9` in layer 9.
    """
    rng = np.random.default_rng(0)
    nodes, weights, x, size = [], [], "x", WIDTH

    def add(op: str, layer: int, *inputs: str) -> str:
        out = f"{op.lower()}_{layer}"
        nodes.append(helper.make_node(op, list(inputs), [out], name=out))
        return out

    for layer in range(layers):
        w = 0.4 * rng.standard_normal((size, width(layer))).astype(np.float32)
        b = rng.standard_normal(width(layer)).astype(np.float32)
        weights += [numpy_helper.from_array(a, f"{n}{layer}") for n, a in (("w", w), ("b", b))]
        h = add("Add", layer, add("MatMul", layer, x, f"w{layer}"), f"b{layer}")
        x = add("Tanh", layer, add("Mul", layer, h, add("Sigmoid", layer, h)))
        size = width(layer)
    nodes.append(helper.make_node("Softmax", [x], ["y"], name="softmax"))
    graph = helper.make_graph(
        nodes,
        "deep",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, size])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 10
    return model


def deep_input(rows: int = 3) -> dict[str, np.ndarray]:
    """An input of the model."""
    return {"x": np.random.default_rng(1).standard_normal((rows, WIDTH)).astype(np.float32)}
