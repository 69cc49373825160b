"""ONNX models as functions of JAX, by the operators of `jax_operators.py`.

    arrays = {**jax_weights(path, np.float16), "x": x}        # x in f16 as well
    results = jax.jit(jax_model(path, np.float16))(arrays)    # in the order of the outputs

A model of f32 becomes one of `numbers`: its weights, its constants and what it casts to f32. An
`If` whose condition is known while the function is traced (as that of shapes is) is the branch
that is taken, any other a `lax.cond`. Inputs of one number, as a sampling rate, are settings: where
they are given with the path they are known too, and a branch that has no meaning for the sizes of
the other inputs is never traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import onnx
from inputs import Numbers, narrowed
from jax import lax
from jax_operators import OPERATORS, Value, is_known
from onnx import numpy_helper

Known = Mapping[str, Value]
Step = Callable[[Known], Any]


@dataclass(frozen=True)
class Program:
    """A graph, ready to run: what is constant, its nodes in order and what it gives."""

    constants: dict[str, np.ndarray]
    steps: list[tuple[Step, tuple[str, ...]]]
    outputs: tuple[str, ...]

    def __call__(self, given: Known) -> list[Value]:
        """The outputs, from the inputs and what is known around the graph."""
        known = {**self.constants, **given}
        for run, names in self.steps:
            results = run(known)
            several = results if isinstance(results, tuple | list) else (results,)
            known.update(zip(names, several, strict=False))
        return [known[name] for name in self.outputs]


def jax_model(
    path: Path, numbers: Numbers = np.float32, settings: Known | None = None
) -> Callable[[Known], list[Value]]:
    """The model as a function of its inputs by name, weights maybe among them; settings come first.

    The outputs come in order.
    """
    graph = onnx.load(str(path)).graph
    missing = sorted({node.op_type for node in _nodes(graph)} - OPERATORS.keys() - {"If"})
    if missing:
        raise NotImplementedError(f"no {', '.join(missing)} in jax_operators.py")
    program = _program(graph, numbers)
    fixed = {"": None, **(settings or {})}
    return lambda inputs: [jnp.asarray(value) for value in program({**inputs, **fixed})]


def jax_weights(path: Path, numbers: Numbers = np.float32) -> dict[str, np.ndarray]:
    """The weights that may be given as inputs: not what has one element, or decides on sizes."""
    graph = onnx.load(str(path)).graph
    sizes = _read_for_sizes(graph)
    tensors = {t.name: numpy_helper.to_array(t) for t in graph.initializer if t.name not in sizes}
    return {
        name: narrowed(array, numbers)
        for name, array in tensors.items()
        if array.dtype == np.float32 and array.size > 1
    }


def settings_of(inputs: Known) -> dict[str, Value]:
    """The inputs of one number."""
    return {name: value for name, value in inputs.items() if not value.ndim}


def _nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """All nodes, those of branches too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _nodes(attribute.g)


def _read_for_sizes(graph: onnx.GraphProto) -> set[str]:
    """Numbers that decide on the sizes of results: they must be known, and exact."""
    return {n for node in _nodes(graph) if node.op_type == "Resize" for n in node.input[1:]}


def _program(graph: onnx.GraphProto, numbers: Numbers) -> Program:
    sizes = _read_for_sizes(graph)
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    constants = {n: a if n in sizes else narrowed(a, numbers) for n, a in arrays.items()}
    kept = [np.float32 if sizes & set(node.output) else numbers for node in graph.node]
    pairs = zip(graph.node, kept, strict=True)
    steps = [(_step(node, kind), tuple(node.output)) for node, kind in pairs]
    return Program(constants, steps, tuple(output.name for output in graph.output))


def _step(node: onnx.NodeProto, numbers: Numbers) -> Step:
    attributes = {a.name: _attribute(a, numbers) for a in node.attribute}
    names = tuple(node.input)
    if node.op_type == "If":
        branches = attributes["else_branch"], attributes["then_branch"]
        return lambda known: _taken(known[names[0]], branches, known)
    operator = OPERATORS[node.op_type]
    return lambda known: operator(attributes, *(known[name] for name in names))


def _attribute(attribute: onnx.AttributeProto, numbers: Numbers) -> Any:
    """An attribute's value: arrays, types and branches with `numbers` for f32."""
    value = onnx.helper.get_attribute_value(attribute)
    if attribute.type == onnx.AttributeProto.GRAPH:
        return _program(value, numbers)
    if attribute.type == onnx.AttributeProto.TENSOR:
        return narrowed(numpy_helper.to_array(value), numbers)
    if attribute.name == "to":
        floats = value == onnx.TensorProto.FLOAT
        return numbers if floats else onnx.helper.tensor_dtype_to_np_dtype(value)
    return value


def _taken(condition: Value, branches: tuple[Program, Program], known: Known) -> list[Value]:
    """What the branch gives that the condition takes."""
    if is_known(condition):
        return branches[bool(condition)](known)
    otherwise, then = (partial(branch, known) for branch in branches)
    return lax.cond(jnp.squeeze(condition), then, otherwise)
