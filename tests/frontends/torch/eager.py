"""Functions on tensors, imported and interpreted, beside what torch itself says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch._functorch.aot_autograd import aot_export_module

from tilewright.frontends.torch.arrays import to_array
from tilewright.frontends.torch.decompositions import decompositions
from tilewright.frontends.torch.importer import import_fx
from tilewright.ir.graph.nodes import Graph
from tilewright.ops.interpret import run_graph

Function = Callable[..., Any]


class Wrapped(torch.nn.Module):
    """A function as a module that gives a tuple."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: torch.Tensor) -> Any:
        found = self.function(*args)
        return tuple(found) if isinstance(found, tuple | list) else (found,)


def imported(function: Function, *inputs: torch.Tensor) -> Graph:
    """The graph of a function or a module, as plain as `torch.compile` would make it."""
    module = Wrapped(function)
    with torch.no_grad():
        graph, signature = aot_export_module(
            module, inputs, trace_joint=False, decompositions=decompositions()
        )
    stored = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    names = {**signature.inputs_to_parameters, **signature.inputs_to_buffers}
    return import_fx(graph, {place: stored[name] for place, name in names.items()}).graph


def check(
    function: Function, *inputs: torch.Tensor, rtol: float = 1e-5, atol: float = 1e-6
) -> Graph:
    """Compare a function's graph, interpreted, with torch; gives the graph."""
    graph = imported(function, *inputs)
    with torch.no_grad():
        expected = function(*inputs)
    expected = expected if isinstance(expected, tuple | list) else [expected]
    given = zip(graph.inputs, inputs, strict=True)
    found = run_graph(graph, {v.name: to_array(x) for v, x in given})
    assert len(graph.outputs) == len(expected)
    for name, theirs in zip(graph.outputs, expected, strict=True):
        ours, right = found[name], to_array(theirs)
        assert ours.dtype == right.dtype
        assert ours.shape == right.shape
        if right.dtype.kind in "biu":
            np.testing.assert_array_equal(ours, right)
        else:
            wide = np.float32 if right.dtype.kind == "V" else right.dtype
            np.testing.assert_allclose(ours.astype(wide), right.astype(wide), rtol=rtol, atol=atol)
    return graph


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def integers(low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    """Whole numbers from `low` up to `high`."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def ops(graph: Graph) -> list[str]:
    """The operators of a graph, in order."""
    return [n.op for n in graph.nodes]
