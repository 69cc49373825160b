"""Running one ONNX node through our importer and interpreter, and through onnxruntime."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import tilewright as tw
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ir.graph.nodes import Graph
from tilewright.ops.interpret import run_graph

Array = np.ndarray | None


def node_model(
    op: str,
    inputs: Sequence[Array],
    *,
    opset: int = 21,
    domain: str = "",
    outputs: int = 1,
    constants: Collection[int] = (),
    dims: dict[int, Sequence[str | int]] | None = None,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node; inputs `constants` are initializers, `dims` declares symbolic shapes.

    `opset` is the version of the operator's domain; an attribute of that name is `opset_`.
    """
    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    values, initializers = [], []
    for i, x in enumerate(inputs):
        if x is None:
            continue
        if i in constants:
            initializers.append(numpy_helper.from_array(x, names[i]))
            continue
        kind = helper.np_dtype_to_tensor_dtype(x.dtype)
        shape = (dims or {}).get(i, x.shape)
        values.append(helper.make_tensor_value_info(names[i], kind, shape))
    results = [f"y{i}" for i in range(outputs)]
    attributes = {name.rstrip("_"): value for name, value in attributes.items()}
    node = helper.make_node(op, names, results, name="node", domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "test", values, [onnx.ValueInfoProto(name=r) for r in results], initializers
    )
    opsets = [helper.make_opsetid(domain, opset)]
    if domain:
        opsets.append(helper.make_opsetid("", 21))
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def imported(op: str, inputs: Sequence[Array], **kw: Any) -> Graph:
    """The graph that a node becomes."""
    return import_onnx(node_model(op, inputs, **kw))


def run_node(op: str, inputs: Sequence[Array], **kw: Any) -> list[np.ndarray]:
    """The outputs of a node by our interpreter."""
    graph = imported(op, inputs, **kw)
    given = {f"x{i}": x for i, x in enumerate(inputs)}
    found = run_graph(graph, {v.name: given[v.name] for v in graph.inputs})
    return [found[name] for name in graph.outputs]


def reference(op: str, inputs: Sequence[Array], **kw: Any) -> list[np.ndarray]:
    """The outputs of a node by onnxruntime."""
    import onnxruntime

    model = onnx.shape_inference.infer_shapes(node_model(op, inputs, **kw))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    wanted = {v.name for v in session.get_inputs()}
    given = {f"x{i}": x for i, x in enumerate(inputs) if f"x{i}" in wanted}
    return session.run(None, given)


def check_node(
    op: str, inputs: Sequence[Array], *, rtol: float = 1e-4, atol: float = 1e-5, **kw: Any
) -> None:
    """Our outputs are onnxruntime's."""
    expected = reference(op, inputs, **kw)
    for ours, theirs in zip(run_node(op, inputs, **kw), expected, strict=True):
        assert ours.dtype == theirs.dtype
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def check_compiled(op: str, inputs: Sequence[Array], **kw: Any) -> None:
    """What a node gives when it is compiled is what onnxruntime gives; texts are allowed."""
    with tw.compile(node_model(op, inputs, **kw), threads=1, cache=False) as model:
        wanted = {port.name for port in model.inputs}
        found = model.run({f"x{i}": x for i, x in enumerate(inputs) if f"x{i}" in wanted})
    for ours, theirs in zip(found.values(), reference(op, inputs, **kw), strict=True):
        assert ours.dtype == theirs.dtype
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(ours, theirs)
