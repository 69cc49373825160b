"""Functions on tensors, imported and interpreted, beside what torch itself says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch._functorch.aot_autograd import aot_export_joint_simple, aot_export_module

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


def check_gradients(
    function: Function, *inputs: torch.Tensor, rtol: float = 1e-9, atol: float = 1e-10
) -> Graph:
    """Compare a function's result and gradients, interpreted in f64, with torch; gives the graph.

    What is differentiated is the sum of its results, each times a number of its own.
    """
    given = [x.double() if x.is_floating_point() else x for x in inputs]
    leaves = [x.requires_grad_(x.is_floating_point()) for x in given]
    # results that are views are refused
    module, made = Wrapped(lambda *xs: [y * 1 for y in Wrapped(function)(*xs)]), decompositions()
    joint = aot_export_joint_simple(module, leaves, trace_joint=True, decompositions=made)
    results = module(*leaves)
    slopes = [random(*y.shape, seed=7).double() for y in results]
    wanted = [x for x in leaves if x.requires_grad]
    found = torch.autograd.grad(results, wanted, slopes, allow_unused=True)
    graph = import_fx(joint, {}).graph
    names = [v.name for v in graph.inputs]
    values = map(to_array, (x.detach() for x in (*leaves, *slopes)))
    ours = run_graph(graph, dict(zip(names, values, strict=True)))
    theirs = [y.detach() for y in (*results, *found) if y is not None]
    assert len(graph.outputs) == len(theirs)
    for name, right in zip(graph.outputs, map(to_array, theirs), strict=True):
        np.testing.assert_allclose(ours[name], right, rtol=rtol, atol=atol)
    return graph
