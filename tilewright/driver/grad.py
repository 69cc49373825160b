"""`tw.grad` and `tw.value_and_grad`: a model in, an executable that gives gradients out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilewright.autodiff.gradient_graph import gradient_graph, with_parameters
from tilewright.driver.compile import compile
from tilewright.driver.sources import import_graph, read_source

if TYPE_CHECKING:
    from tilewright.driver.segmented.model import SegmentedModel
    from tilewright.ir.graph.nodes import Graph
    from tilewright.runtime.model import CompiledModel


def grad(
    source: Any,
    wrt: Sequence[str],
    *,
    of: str | None = None,
    parameters: Collection[str] = (),
    inputs: Any = None,
    dims: Mapping[str, int] | None = None,
    **options: Any,
) -> CompiledModel | SegmentedModel:
    """Compile the gradients of a model's result by some of its inputs and weights.

    `source` is what `tw.compile` takes, and so are `inputs`, `dims` and all further options. `wrt`
    names inputs or weights; the executable gives one gradient for each, named `grad_` and that
    name. `of` is the result that is differentiated: the loss; a model with one result needs none.
    Where it is no single number, the gradient is that of its sum. Weights named in `parameters`
    become inputs, behind those of the model, so that they may change from call to call.
    """
    graph = _with_gradients(source, wrt, of, parameters, inputs, dims)
    return compile(replace(graph, outputs=graph.outputs[-len(wrt) :]), **options)


def value_and_grad(
    source: Any,
    wrt: Sequence[str],
    *,
    of: str | None = None,
    parameters: Collection[str] = (),
    inputs: Any = None,
    dims: Mapping[str, int] | None = None,
    **options: Any,
) -> CompiledModel | SegmentedModel:
    """Compile a model's results followed by gradients; the arguments are those of `tw.grad`."""
    return compile(_with_gradients(source, wrt, of, parameters, inputs, dims), **options)


def _with_gradients(
    source: Any,
    wrt: Sequence[str],
    of: str | None,
    parameters: Collection[str],
    inputs: Any,
    dims: Mapping[str, int] | None,
) -> Graph:
    graph = import_graph(read_source(source, inputs), dims)
    return gradient_graph(with_parameters(graph, parameters), wrt, of)
