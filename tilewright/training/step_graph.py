"""A model, a loss and an optimizer → one graph that does a whole step of training.

    inputs   the model's, the targets, `numbers` of the optimizer, parameters, buffers, states
    outputs  the loss, and parameters, buffers and states after the step

Nothing of it is written to: what comes out goes in again the next time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tilewright.arith.expr import const
from tilewright.autodiff.backward import gradients, nodes_between
from tilewright.autodiff.gradient_graph import opened
from tilewright.core.dtypes import F64
from tilewright.core.errors import ConfigError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType, Type
from tilewright.ops.gradient.formula import part, total, wide
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.traced_value import Value
from tilewright.passes.regions import inline_region
from tilewright.training.losses import named_loss
from tilewright.training.optim.optimizer import Optimizer
from tilewright.training.trainable import Trainable

STATE = "optimizer."
"""How the names of an optimizer's states begin: `optimizer.mean.w` is `mean` of `w`."""
# What torch's clip_grad_norm_ adds to a norm that it divides by.
_NORM_EPSILON = 1e-6


@dataclass(frozen=True)
class StepGraph:
    """The graph of a step, and by the users' names the types of what goes in again."""

    graph: Graph
    batch: tuple[str, ...]
    """The inputs that a user gives: the model's, then the targets."""
    kept: Mapping[str, TensorType]
    """Parameters, buffers and states, in the order of inputs and of outputs."""


@dataclass(frozen=True)
class _Kept:
    """What goes in again: its name, the input, and the value that it is afterwards."""

    name: str
    place: str
    after: str


def step_graph(
    model: Trainable, loss: str | Graph, optimizer: Optimizer, max_norm: float | None = None
) -> StepGraph:
    """The graph of a step; gradients are scaled down to a norm of `max_norm` over all of them."""
    g = opened(model.graph)
    places = {*model.parameters.values(), *(place for place, _ in model.buffers.values())}
    data = [v.name for v in g.inputs if v.name not in places and v.name != model.seed]
    found, targets = _with_loss(g, model.results, loss)
    slopes = _slopes(g, model, found, max_norm)
    numbers = g.input("numbers", TensorType(F64, (const(len(optimizer.numbers(1))),)))
    kept = _updated(g, model, optimizer, slopes, numbers)
    kept += [_Kept(name, *pair) for name, pair in model.buffers.items()]
    after = [g.add("identity", k.after, name="after") for k in kept]
    seeds = [model.seed] if model.seed else []
    order = [*data, *targets, numbers, *seeds, *(k.place for k in kept)]
    by_name = {v.name: v for v in g.inputs}
    graph = replace(g.graph(found, *after), inputs=tuple(by_name[name] for name in order))
    return StepGraph(graph, (*data, *targets), {k.name: g.type(k.place) for k in kept})


def _with_loss(g: GraphBuilder, results: Sequence[str], loss: str | Graph) -> tuple[str, list[str]]:
    """The loss, and the inputs that are its targets."""
    if isinstance(loss, str):
        formula = named_loss(loss)
        if len(results) != 1:
            raise ConfigError(
                "train.loss",
                f"{loss} of a model with {len(results)} results",
                help="give a graph that takes all results, and the targets",
            )
        x = Value(g, results[0])
        target = g.input("target", formula.target(g.type(x.name)))
        return formula.formula(x, Value(g, target)).name, [target]
    _check_loss(g, results, loss)
    targets = [g.input(v.name, v.type) for v in loss.inputs[len(results) :]]
    (found,) = inline_region(g, loss, [*results, *targets])
    return found, targets


def _check_loss(g: GraphBuilder, results: Sequence[str], loss: Graph) -> None:
    """A loss takes the results first, and gives one number."""
    taken: list[Type] = [v.type for v in loss.inputs[: len(results)]]
    given: list[Type] = [g.types[name] for name in results]
    out = loss.types[loss.outputs[0]]
    is_number = isinstance(out, TensorType) and not out.shape and out.dtype.is_float
    if taken != given or len(loss.outputs) != 1 or not is_number:
        raise ConfigError(
            "train.loss",
            f"{loss.name!r} takes {', '.join(map(str, taken))} and gives {out}",
            help=f"it must take {', '.join(map(str, given))} first, and give one number",
        )


def _slopes(
    g: GraphBuilder, model: Trainable, loss: str, max_norm: float | None
) -> dict[str, Value]:
    """The gradients by parameters that the loss depends on, by the names of their inputs."""
    wrt = set(model.parameters.values())
    found = gradients(g, nodes_between(g.nodes, wrt, loss), wrt, loss)
    slopes = {place: Value(g, found[place]) for place in sorted(wrt & found.keys())}
    if not slopes:
        raise ConfigError(
            "train.parameter",
            f"the loss of {model.graph.name!r} depends on no parameter",
            help="name weights in `parameters`, or give a loss of what the model computes",
        )
    return slopes if max_norm is None else _scaled_down(slopes, max_norm)


def _scaled_down(slopes: Mapping[str, Value], max_norm: float) -> dict[str, Value]:
    """Gradients multiplied by one number, so that the norm of them all is at most `max_norm`."""
    squares = []
    for dp in slopes.values():
        x = wide(dp)
        squares.append(total(x * x, tuple(range(len(x.shape))), keepdims=False))
    norm = sum(squares[1:], squares[0]).apply("sqrt")
    scale = (norm.number(max_norm) / (norm + _NORM_EPSILON)).apply("min", 1.0)
    return {name: (wide(dp) * scale).cast(dp.dtype) for name, dp in slopes.items()}


def _updated(
    g: GraphBuilder,
    model: Trainable,
    optimizer: Optimizer,
    slopes: Mapping[str, Value],
    numbers: str,
) -> list[_Kept]:
    """Parameters and states after the step; without a gradient, a parameter stays as it is."""
    parameters, states = [], []
    count = len(optimizer.numbers(1))
    each = [part(Value(g, numbers), 0, i, i + 1).reshape(()) for i in range(count)]
    for name, place in model.parameters.items():
        p = Value(g, place)
        if place not in slopes:
            parameters.append(_Kept(name, place, place))
            continue
        t = g.type(place)
        own = {k: g.input(f"{place}.{k}", kind) for k, kind in optimizer.state(t).items()}
        given = {k: Value(g, s) for k, s in own.items()}
        new, after = optimizer.update(p, slopes[place], given, [n.cast(p.dtype) for n in each])
        parameters.append(_Kept(name, place, new.name))
        states += [_Kept(f"{STATE}{k}.{name}", s, after[k].name) for k, s in own.items()]
    return parameters + states
