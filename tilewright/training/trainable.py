"""A model whose weights are inputs, so that they may change from run to run.

    graph @net(x: f32[N, 3], w: f32[3, 2]) { ... }     parameters {"w": "w"}, values {"w": array}

Of a module of torch, parameters have the names that it gives them, and what it writes to as it
runs, as running statistics, are buffers. Of other models every weight that has a gradient is one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tilewright.autodiff.backward import nodes_between
from tilewright.autodiff.gradient_graph import with_parameters
from tilewright.core.dtypes import F32
from tilewright.core.errors import ConfigError
from tilewright.driver.sources import import_graph, is_torch, read_source
from tilewright.ir.graph.nodes import Constant, Graph, Node, Value
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.arithmetic import CastAttrs


@dataclass(frozen=True)
class Trainable:
    """A graph, and which of its inputs are what a training step changes, by the users' names."""

    graph: Graph
    parameters: Mapping[str, str]
    values: Mapping[str, np.ndarray]
    """What parameters and buffers are at first."""
    buffers: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """The input of each, and the output that it is after a run; these come first."""
    seed: str | None = None
    """The input that is the key of random numbers."""

    @property
    def results(self) -> tuple[str, ...]:
        """The outputs that are the model's own."""
        return self.graph.outputs[len(self.buffers) :]


def trainable(
    source: Any, inputs: Any, dims: Mapping[str, int] | None, names: Collection[str] | None
) -> Trainable:
    """The model of a source; `names` are its parameters, where not all of its weights are."""
    if is_torch(source):
        from tilewright.frontends.torch.training_capture import import_training

        found = import_training(source, inputs)
        given = found.parameters, found.values, found.buffers, found.seed
        model = Trainable(found.graph, *given)
        return model if names is None else _only(model, names)
    return _of_graph(import_graph(read_source(source, inputs), dims), names)


def with_masters(model: Trainable) -> Trainable:
    """The model with parameters of 16 bits kept in f32 beside: steps are far smaller than those."""
    graph, values = model.graph, dict(model.values)
    parameters = dict(model.parameters)
    inputs, casts = {v.name: v for v in graph.inputs}, []
    for name, place in model.parameters.items():
        t = graph.types[place]
        if not isinstance(t, TensorType) or t.dtype.bits >= F32.bits:
            continue
        master, kept = f"{place}.master", replace(t, dtype=F32)
        casts.append(Node("cast", (master,), (place,), (t,), CastAttrs(t.dtype)))
        inputs[place] = Value(master, kept)
        parameters[name], values[name] = master, values[name].astype(np.float32)
    changed = replace(graph, inputs=tuple(inputs.values()), nodes=(*casts, *graph.nodes))
    return replace(model, graph=changed, parameters=parameters, values=values)


def _only(model: Trainable, names: Collection[str]) -> Trainable:
    """The model with some of its parameters; the others are constants again."""
    for name in names:
        if name not in model.parameters:
            raise _unknown(model.graph, name, model.parameters)
    fixed = {model.parameters[n]: model.values[n] for n in model.parameters if n not in names}
    graph = model.graph
    inputs = tuple(v for v in graph.inputs if v.name not in fixed)
    types = {v.name: v.type for v in graph.inputs if isinstance(v.type, TensorType)}
    constants = [Constant(n, types[n], data) for n, data in fixed.items()]
    values = {n: v for n, v in model.values.items() if n in names or n in model.buffers}
    parameters = {name: model.parameters[name] for name in model.parameters if name in names}
    changed = replace(graph, inputs=inputs, constants=(*graph.constants, *constants))
    return Trainable(changed, parameters, values, model.buffers, model.seed)


def _of_graph(graph: Graph, names: Collection[str] | None) -> Trainable:
    weights = {c.name: c.data for c in graph.constants if _is_weight(graph, c)}
    if names is None:
        names = list(weights)
    for name in names:
        if name not in weights:
            raise _unknown(graph, name, weights)
    parameters = {name: name for name in weights if name in names}
    values = {name: np.array(weights[name]) for name in parameters}
    return Trainable(with_parameters(graph, parameters), parameters, values)


def _is_weight(graph: Graph, c: Constant) -> bool:
    """Whether a constant may be trained: floats that results depend on, and no statistics."""
    if not c.type.dtype.is_float or c.data.size < 2 or c.name not in graph.consumers:
        return False
    if any(n.op == "batch_norm" and c.name in n.inputs[3:] for n in graph.nodes):
        return False
    return any(nodes_between(graph.nodes, {c.name}, out) for out in graph.outputs)


def _unknown(graph: Graph, name: str, known: Collection[str]) -> ConfigError:
    return ConfigError(
        "train.parameter",
        f"{graph.name!r} has no weight {name!r} that can be trained",
        help=f"one of {', '.join(list(known)[:8]) or 'none'}",
    )
