"""What cannot be compiled runs in eager between the compiled parts of a graph of ATen operators.

    parts = partitioned(graph, refusals(graph), compile_part)
    parts([x, weight])                   # one compiled part, an operator of torch, another part

Each part is as large as it can be without waiting for itself. Operators of torch are said once in a
process, by a warning with the reason.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._dynamo import symbolic_convert
from torch.fx import GraphModule, Node
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from tilewright.compat.torch_call import Boxed
from tilewright.core.errors import Error
from tilewright.frontends.torch.symbolic_shapes import unbound_symbols

PREFIX = "compiled_"
"""How the names of compiled parts begin in the graph that calls them."""

_said: set[str] = set()


class EagerWarning(UserWarning):
    """An operator is not compiled and runs in eager."""


def is_fullgraph() -> bool:
    """Whether Dynamo is asked for one graph, which a part in eager would break."""
    tracer = getattr(symbolic_convert.tls, "current_tx", None)
    return tracer is not None and (tracer.one_graph or tracer.error_on_graph_break)


class _Part(torch.nn.Module):  # type: ignore[misc]  # torch is not typed here
    """A compiled part as the graph calls it: arguments one by one, a single result as itself."""

    def __init__(self, call: Boxed, single: bool) -> None:
        super().__init__()
        self.call = call
        self.single = single

    def forward(self, *args: Any) -> Any:
        found = self.call(list(args))
        return found[0] if self.single else found


class _Support(OperatorSupportBase):  # type: ignore[misc]  # torch is not typed here
    """Which nodes can be compiled: those that give tensors and are not refused."""

    def __init__(self, refused: Mapping[Node, Error]) -> None:
        self.refused = refused

    def is_node_supported(self, submodules: Mapping[str, Any], node: Node) -> bool:
        """Whether a node can be in a part."""
        if node.op != "call_function" or node in self.refused:
            return False
        value = node.meta.get("val")
        items = value if isinstance(value, list | tuple) else [value]
        return any(isinstance(item, torch.Tensor) for item in items)


def partitioned(
    graph: GraphModule, refused: Mapping[Node, Error], compile_part: Callable[[GraphModule], Boxed]
) -> Boxed:
    """The graph, which is changed, with all that is not refused in compiled parts."""
    for node, error in refused.items():
        _say(node, error)
    support = _Support(refused)
    partitioner = CapabilityBasedPartitioner(graph, support, allows_single_node_partition=True)
    fused = partitioner.partition_and_fuse(PREFIX)
    for node in fused.graph.find_nodes(op="call_module"):
        part = fused.get_submodule(node.target)
        _bind_symbols(fused, node, part)
        (results,) = part.graph.output_node().args
        single = isinstance(results, Node)
        if single:
            part.graph.output_node().args = ((results,),)
        fused.set_submodule(node.target, _Part(compile_part(part), single))
    fused.recompile()
    return boxed(fused)


def boxed(module: Callable[..., Any]) -> Boxed:
    """A module that takes a list of arguments, as AOTAutograd calls it."""

    def call(args: list[Any]) -> list[Any]:
        given = tuple(args)
        args.clear()
        return list(module(*given))

    call._boxed_call = True  # type: ignore[attr-defined]
    return call


def _say(node: Node, error: Error) -> None:
    """Warn that an operator runs in eager; of other nodes nothing runs."""
    if node.op == "call_function":
        _say_once(str(node.target), error)


def _say_once(what: str, error: Error) -> None:
    if what not in _said:
        _said.add(what)
        warnings.warn(f"{what} runs in eager: {error.message}", EagerWarning, stacklevel=2)


def _bind_symbols(fused: GraphModule, node: Node, part: GraphModule) -> None:
    """Hand a part the symbols of its sizes that no dimension of a tensor says the value of."""
    known = {_symbol(n): n for n in fused.graph.find_nodes(op="placeholder")}
    held = {_symbol(n) for n in part.graph.find_nodes(op="placeholder")}
    for symbol in unbound_symbols(part):
        if symbol not in held and symbol in known:
            first = next(iter(part.graph.nodes))
            with part.graph.inserting_before(first):
                made = part.graph.placeholder(f"{symbol}_size")
            made.meta = dict(known[symbol].meta)
            node.args = (known[symbol], *node.args)
    part.recompile()


def _symbol(node: Node) -> str | None:
    value = node.meta.get("val")
    return str(value.node.expr) if isinstance(value, torch.SymInt) else None


def whole_in_eager(graph: GraphModule, error: Error) -> Boxed:
    """A graph that the compiler itself refuses, in eager; `error` says why."""
    names = sorted({str(node.target) for node in graph.graph.nodes if node.op == "call_function"})
    _say_once(f"a graph of {', '.join(names)}", error)
    return boxed(graph)
