"""A graph → the graph that also computes how one of its results changes with its operands.

    graph @g(x: f32[4]) {            gradient_graph(g, ["x"])
      %y: f32[4] = exp(%x)           %d = full() {value=1}   %v = mul(%d, %y)
      return %y                      return %y, %grad_x
    }

What the gradient is taken by may be an input, or a constant: a weight. Of a result that is no
single number it is the gradient of the sum.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from difflib import get_close_matches

from tilewright.autodiff.backward import full_like, gradients, nodes_between
from tilewright.core.errors import ConfigError
from tilewright.ir.graph.nodes import Graph, Value
from tilewright.ir.types import TensorType
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.shape.dim_equalities import DimEqualities


def gradient_graph(graph: Graph, wrt: Sequence[str], of: str | None = None) -> Graph:
    """The graph with further outputs: the gradient of the result `of` by each of `wrt`.

    They are named `grad_` and what they are by. Without `of` it is the graph's only result.
    """
    y = _result(graph, of)
    _check_operands(graph, wrt)
    g = opened(graph)
    found = gradients(g, nodes_between(g.nodes, set(wrt), y), set(wrt), y)
    names = []
    for x in wrt:
        dx = found[x] if x in found else full_like(g, x, 0.0)
        names.append(g.add("identity", dx, name=f"grad_{x}"))
    return g.graph(*graph.outputs, *names)


def opened(graph: Graph) -> GraphBuilder:
    """A builder that has all of a graph, for adding to it."""
    g = GraphBuilder(graph.name, graph.loc)
    g.inputs = list(graph.inputs)
    g.types = dict(graph.types)
    for constant in graph.constants:
        g.take_constant(constant)
    g.nodes = list(graph.nodes)
    g.checks = {c.condition: c for c in graph.checks}
    g.equalities = DimEqualities(graph.checks)
    return g


def with_parameters(graph: Graph, names: Collection[str]) -> Graph:
    """The graph with some of its constants as inputs, behind those that it has."""
    constants = graph.constant_by_name
    for name in names:
        if name not in constants:
            raise _unknown(graph, name, constants, "constant")
    taken = tuple(Value(name, constants[name].type) for name in names)
    kept = tuple(c for c in graph.constants if c.name not in names)
    return replace(graph, inputs=(*graph.inputs, *taken), constants=kept)


def _result(graph: Graph, of: str | None) -> str:
    if of is None and len(graph.outputs) != 1:
        raise ConfigError(
            "grad.result",
            f"{graph.name!r} has {len(graph.outputs)} results",
            help=f"say with `of` which one to differentiate: {', '.join(graph.outputs)}",
        )
    y = graph.outputs[0] if of is None else of
    if y not in graph.output_set:
        raise _unknown(graph, y, graph.outputs, "result")
    _check_float(graph, y)
    return y


def _check_operands(graph: Graph, wrt: Sequence[str]) -> None:
    known = [v.name for v in graph.inputs] + [c.name for c in graph.constants]
    if not wrt:
        raise ConfigError(
            "grad.operands",
            "there is nothing to differentiate by",
            help="name inputs or weights in `wrt`",
        )
    for name in wrt:
        if name not in known:
            raise _unknown(graph, name, known, "input or weight")
        _check_float(graph, name)


def _check_float(graph: Graph, name: str) -> None:
    t = graph.types[name]
    if not isinstance(t, TensorType) or not t.dtype.is_float:
        raise ConfigError(
            "grad.type",
            f"{name!r} of {graph.name!r} is {t}",
            help="gradients are those of tensors of floats",
        )


def _unknown(graph: Graph, name: str, known: Collection[str], what: str) -> ConfigError:
    near = get_close_matches(name, known) or list(known)[:8]
    message = f"{graph.name!r} has no {what} named {name!r}"
    return ConfigError("grad.unknown", message, help=f"one of {', '.join(near) or 'none'}")
