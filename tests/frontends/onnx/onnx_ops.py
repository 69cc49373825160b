"""Importing and running one ONNX operator, for the tests of converters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper

from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ops.interpret import run_graph


def onnx_model(
    op: str,
    inputs: Mapping[str, np.ndarray],
    constants: Mapping[str, np.ndarray],
    outputs: int = 1,
    opset: int = 20,
    **attrs: Any,
) -> ModelProto:
    """A model of one node, its operands in the order of `inputs` and then `constants`."""
    names = [*inputs, *constants]
    results = [f"out{i}" for i in range(outputs)]
    ins = [
        helper.make_tensor_value_info(k, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for k, a in inputs.items()
    ]
    outs = [helper.make_tensor_value_info(r, 1, None) for r in results]
    tensors = [numpy_helper.from_array(a, k) for k, a in constants.items()]
    node = helper.make_node(op, names, results, name="here", **attrs)
    graph = helper.make_graph([node], "g", ins, outs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def run_onnx(
    op: str,
    *inputs: np.ndarray,
    constants: Mapping[str, np.ndarray] | None = None,
    outputs: int = 1,
    opset: int = 20,
    **attrs: Any,
) -> list[np.ndarray]:
    """The outputs of one node; `constants` are further operands that are initializers."""
    given = {f"x{i}": x for i, x in enumerate(inputs)}
    graph = import_onnx(onnx_model(op, given, constants or {}, outputs, opset, **attrs))
    found = run_graph(graph, given)
    return [found[name] for name in graph.outputs]
