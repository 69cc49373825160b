"""`torch.compile(module, backend="tilewright")`.

Dynamo captures graphs, AOTAutograd functionalizes them: no mutation, ATen operators only. A graph
is compiled on its first call, when its parameters are known: they become constants of the model. If
a later call finds other or changed tensors, the graph is compiled again.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch._dynamo.backends.common import aot_autograd
from torch.fx import GraphModule

from tilewright.core.errors import ConfigError, UnsupportedError
from tilewright.driver.compile import compile
from tilewright.frontends.torch.arrays import to_argument, to_tensor
from tilewright.frontends.torch.decompositions import decompositions
from tilewright.frontends.torch.importer import Imported, import_fx, unbound_symbols
from tilewright.frontends.torch.symbolic_shapes import Sizes

OPTIONS = ("target", "threads", "precision", "tuned", "nearest_workload", "cache", "checks")


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
    if torch.is_grad_enabled() and any(_requires_grad(i) for i in inputs):
        raise _training()
    compiler: Callable[..., Callable[..., Any]] = aot_autograd(
        fw_compiler=_refuse,
        inference_compiler=lambda graph, _: CompiledGraph(graph, dict(options or {})),
        decompositions=decompositions(),
    )
    return compiler(module, inputs)


def _requires_grad(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def _refuse(graph: GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
    raise _training()


def _training() -> UnsupportedError:
    return UnsupportedError(
        "torch.training",
        "gradients are asked for, and only inference is compiled",
        help="call the module under torch.no_grad() or torch.inference_mode()",
    )


class Variant:
    """A graph compiled for certain weights: the tensors, and how often each had been written to."""

    def __init__(
        self,
        weights: Sequence[torch.Tensor],
        numbers: tuple[int, ...],
        imported: Imported,
        model: Callable[..., Any],
    ) -> None:
        self.weights = tuple(weights)
        self.numbers = numbers
        self.imported = imported
        self.model = model
        # Tensors of inference mode do not count.
        self._counting = [w for w in weights if not w.is_inference()]
        self._versions = [w._version for w in self._counting]

    def same(self, weights: Sequence[torch.Tensor]) -> bool:
        """Whether these are its weights, whatever was written to them."""
        return all(map(operator.is_, self.weights, weights))

    def fits(self, weights: Sequence[torch.Tensor], numbers: tuple[int, ...]) -> bool:
        """Whether these are the weights and numbers that it was compiled for."""
        if numbers != self.numbers or not self.same(weights):
            return False
        return [w._version for w in self._counting] == self._versions


class CompiledGraph:
    """A graph of ATen operators as a callable on a list of tensors, compiled when it is called."""

    _boxed_call = True  # what AOTAutograd calls with a list, which is emptied to free the tensors

    def __init__(self, graph: GraphModule, options: Mapping[str, Any]) -> None:
        self.graph = graph
        self.options = options
        self.names = [n.name for n in graph.graph.find_nodes(op="placeholder")]
        self.unbound = unbound_symbols(graph)
        self.weights: list[int] | None = None
        self.inputs: list[int] = []
        # the GPU on which the graph's tensors are; Dynamo makes another graph for another one
        self.there: torch.device | None = None
        self.variants: list[Variant] = []

    def __call__(self, args: list[Any]) -> list[Any]:
        """The results for all arguments of the graph: weights, inputs and numbers."""
        if self.weights is None:
            self.weights = [i for i, value in enumerate(args) if _is_weight(value)]
            self.inputs = [
                i
                for i, value in enumerate(args)
                if isinstance(value, torch.Tensor) and i not in self.weights
            ]
            tensors = (args[i] for i in (*self.inputs, *self.weights))
            self.there = next((t.device for t in tensors if t.is_cuda), None)
        variant = self._variant(args)
        given = [to_argument(args[i]) for i in self.inputs]
        args.clear()
        found = variant.model(*given)
        results = iter(found if isinstance(found, tuple) else (found,))
        return [_result(kind, results, self.there) for kind in variant.imported.kinds]

    def _variant(self, args: Sequence[Any]) -> Variant:
        assert self.weights is not None
        weights = [args[i] for i in self.weights]
        fixed = self._numbers(args)
        numbers = tuple(fixed.values())
        for variant in self.variants:
            if variant.fits(weights, numbers):
                return variant
        # What was compiled for the same tensors before they were written to is of no use again.
        self.variants = [v for v in self.variants if v.numbers != numbers or not v.same(weights)]
        made = self._compiled(weights, fixed)
        self.variants.append(made)
        return made

    def _numbers(self, args: Sequence[Any]) -> dict[str, int]:
        """The values of symbols that are numbers of their own, and no sizes of inputs."""
        if not self.unbound:
            return {}
        found = {}
        for node, value in zip(self.graph.graph.find_nodes(op="placeholder"), args, strict=True):
            known = node.meta.get("val")
            if isinstance(known, torch.SymInt):
                found[str(known.node.expr)] = int(value)
        return {symbol: found[symbol] for symbol in self.unbound}

    def _compiled(self, weights: Sequence[torch.Tensor], fixed: Mapping[str, int]) -> Variant:
        assert self.weights is not None
        constants = {self.names[i]: w for i, w in zip(self.weights, weights, strict=True)}
        imported = import_fx(self.graph, constants, Sizes(fixed))
        model: Callable[..., Any] = _nothing
        if imported.graph.outputs:
            target = "native" if self.there is None else "cuda"
            model = compile(imported.graph, **{"target": target, **self.options})
        return Variant(weights, tuple(fixed.values()), imported, model)


def _nothing(*arrays: Any) -> tuple[Any, ...]:
    return ()


def _is_weight(value: Any) -> bool:
    """Whether an argument is a parameter or buffer, which Dynamo marks as staying where it is."""
    return isinstance(value, torch.nn.Parameter) or hasattr(value, "_dynamo_static_input_type")


def _result(kind: type | None, results: Any, there: torch.device | None) -> Any:
    """A result of the kind that torch expects, `there` if that is a GPU."""
    if kind is None:
        return None
    found = next(results)
    if kind is int:
        return int(found) if isinstance(found, torch.Tensor) else int(np.asarray(found))
    tensor = found if isinstance(found, torch.Tensor) else to_tensor(found)
    return tensor if there is None or tensor.is_cuda else tensor.to(there)
