"""Models of a single node, imported and interpreted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ir.graph.nodes import Graph
from tilewright.ops.interpret import run_graph

Arrays = Mapping[str, np.ndarray]


def model_of(
    op: str,
    inputs: Arrays,
    constants: Arrays | None = None,
    *,
    opset: int = 21,
    order: Sequence[str] | None = None,
    outputs: Sequence[str] = ("y",),
    dims: Mapping[str, Sequence[str | int]] | None = None,
    **attributes: Any,
) -> ModelProto:
    """A model with one node; `order` lists its operands, `dims` the declared shapes of inputs."""
    constants = constants or {}
    operands = list(order if order is not None else (*inputs, *constants))
    node = helper.make_node(op, operands, list(outputs), **attributes)
    declared = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(x.dtype), (dims or {}).get(name, x.shape)
        )
        for name, x in inputs.items()
    ]
    results = [helper.make_empty_tensor_value_info(name) for name in outputs if name]
    stored = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    graph = helper.make_graph([node], "one_node", declared, results, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


def imported(op: str, inputs: Arrays, constants: Arrays | None = None, **options: Any) -> Graph:
    """The graph of a model of one node."""
    return import_onnx(model_of(op, inputs, constants, **options))


def results(
    op: str, inputs: Arrays, constants: Arrays | None = None, **options: Any
) -> list[np.ndarray]:
    """What the imported graph computes."""
    graph = imported(op, inputs, constants, **options)
    found = run_graph(graph, {v.name: inputs[v.name] for v in graph.inputs})
    return [found[name] for name in graph.outputs]


def check(op: str, inputs: Arrays, constants: Arrays | None = None, **options: Any) -> None:
    """Compare with the reference implementation of ONNX."""
    found = results(op, inputs, constants, **options)
    reference = ReferenceEvaluator(model_of(op, inputs, constants, **options))
    for ours, wanted in zip(found, reference.run(None, dict(inputs)), strict=True):
        assert ours.dtype == wanted.dtype
        np.testing.assert_allclose(ours, wanted, rtol=1e-5, atol=1e-5)
