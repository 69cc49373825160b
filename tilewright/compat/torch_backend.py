"""`torch.compile(module, backend="tilewright")`.

Dynamo captures graphs, AOTAutograd functionalizes them: no mutation, ATen operators only. A graph
is compiled on its first call, when its parameters are known: they become constants of the model. If
a later call finds other tensors, the graph is compiled again; those that have been written to are
inputs of it from then on. Where gradients are asked for, see `torch_training`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any

import torch
from torch.fx import GraphModule

from tilewright.compat.torch_call import Boxed, boxed_call
from tilewright.compat.torch_partition import is_fullgraph, partitioned, whole_in_eager
from tilewright.compat.torch_results import Results
from tilewright.compat.torch_training import differentiated, refuse_distributed
from tilewright.core.errors import ConfigError, Error
from tilewright.driver.compile import compile
from tilewright.frontends.torch.importer import import_fx, refusals
from tilewright.frontends.torch.symbolic_shapes import Sizes, unbound_symbols

_version = operator.attrgetter("_version")
_address = torch.Tensor.data_ptr

OPTIONS = (
    *("target", "threads", "precision", "tuned", "nearest_workload", "cache", "checks"),
    "fallback",
)


def tilewright(
    module: GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """The backend: a callable for a graph of Dynamo's; `options` are those of `tw.compile`."""
    unknown = sorted(set(options or {}) - set(OPTIONS))
    if unknown or mode not in (None, "default"):
        raise ConfigError(
            "torch.options",
            f"no option {', '.join(unknown)}" if unknown else f"no mode {mode!r}",
            help=f"options={{...}} may hold {', '.join(OPTIONS)}",
        )
    refuse_distributed()
    given = {"fallback": not is_fullgraph(), **(options or {})}
    return differentiated(
        module,
        inputs,
        inference=lambda graph, _: CompiledGraph(graph, given),
        training=lambda graph, _: CompiledGraph(graph, given, freezes=False),
    )


class Variant:
    """A graph compiled for certain weights: the tensors, where they lie, how often written to."""

    def __init__(
        self, weights: Sequence[torch.Tensor], numbers: tuple[int, ...], call: Boxed
    ) -> None:
        self.weights = tuple(weights)
        self.numbers = numbers
        self.call = call
        # Tensors of inference mode do not count.
        self._counting = [w for w in weights if not w.is_inference()]
        self._versions = list(map(_version, self._counting))
        self._addresses = list(map(_address, weights))
        # nothing else may come to lie where theirs was, once `data` of a weight is another tensor
        self._held = [w.detach() for w in weights]

    def same(self, weights: Sequence[torch.Tensor]) -> bool:
        """Whether these are its weights, whatever was written to them."""
        return all(map(operator.is_, self.weights, weights))

    def fits(self, weights: Sequence[torch.Tensor], numbers: tuple[int, ...]) -> bool:
        """Whether these are the weights and numbers that it was compiled for."""
        return (
            numbers == self.numbers
            and all(map(operator.is_, self.weights, weights))
            and list(map(_version, self._counting)) == self._versions
            and list(map(_address, weights)) == self._addresses
        )

    def changed(self) -> list[int]:
        """Which of its weights have been written to, or have other memory."""
        written = {
            id(w) for w, v in zip(self._counting, self._versions, strict=True) if w._version != v
        }
        moved = map(operator.ne, self._addresses, map(_address, self.weights))
        pairs = zip(self.weights, moved, strict=True)
        return [i for i, (w, is_elsewhere) in enumerate(pairs) if is_elsewhere or id(w) in written]


class CompiledGraph:
    """A graph of ATen operators as a callable on a list of tensors, compiled when it is called."""

    def __init__(
        self, graph: GraphModule, options: Mapping[str, Any], freezes: bool = True
    ) -> None:
        """`freezes`: parameters are constants; otherwise they are inputs like others."""
        # what AOTAutograd calls with a list, which is emptied to free the tensors; an attribute of
        # the object, since Dynamo wraps it and copies these
        self._boxed_call = True
        self.results = Results.of(graph)
        self.graph = self.results.graph
        self.options = {name: value for name, value in options.items() if name != "fallback"}
        self.fallback = options.get("fallback", False)
        # compiled and eager parts in its place, once it is known that it cannot be compiled whole
        self.parts: Boxed | None = None
        self.freezes = freezes
        self.names = [n.name for n in self.graph.graph.find_nodes(op="placeholder")]
        self.unbound = unbound_symbols(self.graph)
        self.weights: list[int] | None = None
        self.inputs: list[int] = []
        # the GPU on which the graph's tensors are; Dynamo makes another graph for another one
        self.there: torch.device | None = None
        self.variants: list[Variant] = []

    def __call__(self, args: list[Any]) -> list[Any]:
        """The results for all arguments of the graph: weights, inputs and numbers."""
        if self.weights is None:
            self._sort(args, set(self._frozen(args)))
        if self.results.is_all_computed:
            return self._computed(args)
        kept = self.results.kept(args)
        return self.results.joined(kept, self._computed(args))

    def _computed(self, args: list[Any]) -> list[Any]:
        """The results that are no arguments."""
        if self.parts is None:
            try:
                variant = self._variant(args)
            except Error as error:
                if not self.fallback:
                    raise
                self.parts = self._split(error, args)
        if self.parts is not None:
            return self.parts(args)
        return variant.call(args)

    def _split(self, error: Error, args: Sequence[Any]) -> Boxed:
        """The parts of a graph that cannot be compiled whole, for which `error` was raised."""
        refused = refusals(self.graph, Sizes(self._numbers(args)))
        if not refused:
            return whole_in_eager(self.graph, error)
        options = {**self.options, "fallback": True}
        make = lambda part: CompiledGraph(part, options, self.freezes)  # noqa: E731
        return partitioned(self.graph, refused, make)

    def _frozen(self, args: Sequence[Any]) -> Iterator[int]:
        """The arguments that are constants: none where parameters are written to."""
        written = self.results.written
        if self.freezes and not any(isinstance(args[i], torch.nn.Parameter) for i in written):
            yield from (i for i, a in enumerate(args) if _is_weight(a) and i not in written)

    def _sort(self, args: Sequence[Any], weights: Set[int]) -> None:
        tensors = [i for i, value in enumerate(args) if isinstance(value, torch.Tensor)]
        self.weights = [i for i in tensors if i in weights]
        self.inputs = [i for i in tensors if i not in weights]
        self.there = next((args[i].device for i in tensors if args[i].is_cuda), None)
        self.variants = []

    def _variant(self, args: Sequence[Any]) -> Variant:
        assert self.weights is not None
        weights = [args[i] for i in self.weights]
        fixed = self._numbers(args) if self.unbound else {}
        numbers = tuple(fixed.values())
        for variant in self.variants:
            if variant.fits(weights, numbers):
                return variant
        changed = {i for v in self.variants if v.same(weights) for i in v.changed()}
        if changed:  # what has been written to will be again: it is an input from now on
            self._sort(args, {w for i, w in enumerate(self.weights) if i not in changed})
            weights = [args[i] for i in self.weights]
        made = self._compiled(weights, fixed, args)
        self.variants.append(made)
        return made

    def _numbers(self, args: Sequence[Any]) -> dict[str, int]:
        """The values of symbols that are numbers of their own, and no sizes of inputs."""
        found = {}
        for node, value in zip(self.graph.graph.find_nodes(op="placeholder"), args, strict=True):
            known = node.meta.get("val")
            if isinstance(known, torch.SymInt):
                found[str(known.node.expr)] = int(value)
        return {symbol: found[symbol] for symbol in self.unbound}

    def _compiled(
        self, weights: Sequence[torch.Tensor], fixed: Mapping[str, int], args: Sequence[Any]
    ) -> Variant:
        assert self.weights is not None
        constants = {self.names[i]: w for i, w in zip(self.weights, weights, strict=True)}
        imported = import_fx(
            self.graph, constants, Sizes(fixed), is_seeded=True, in_memory_order=True
        )
        model: Callable[..., Any] = _nothing
        if imported.graph.outputs:
            target = "native" if self.there is None else "cuda"
            model = compile(imported.graph, **{"target": target, **self.options})
        call = boxed_call(imported, model, args, self.inputs, self.there)
        return Variant(weights, tuple(fixed.values()), call)


def _nothing(*arrays: Any) -> tuple[Any, ...]:
    return ()


def _is_weight(value: Any) -> bool:
    """Whether an argument is a parameter or buffer, which Dynamo marks as staying where it is."""
    return isinstance(value, torch.nn.Parameter) or hasattr(value, "_dynamo_static_input_type")
