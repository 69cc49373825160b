"""Prove indices: constant indices that lie inside their dimensions need no check at run time.

    %y = gather(%x, [0, 2, 5])  →  %y = gather(%x, [0, 2, 5]) {mode="clip"}      %x has 8 rows

One that lies outside keeps its check: the node may be in a branch that is never taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.arith.expr import as_int
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Shape
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph


def prove_indices(graph: Graph, context: PassContext) -> Graph:
    """Drop the checks of constant indices that lie inside."""
    return rewrite_graph(graph, _rule, of=tuple(_SIZES))


def _rule(g: Rewriter, n: Node) -> str | None:
    attrs: Any = n.attrs
    if n.op not in _SIZES or attrs.mode != "raise":
        return None
    indices = g.constant_data(n.inputs[1])
    if indices is None:
        return None
    sizes = _SIZES[n.op](attrs, g.type(n.inputs[0]).shape, indices)
    numbers = [as_int(size) for size in sizes]
    if any(size is None for size in numbers) or not _lie_inside(indices, numbers):
        return None
    return g.add(n.op, *n.inputs, attrs=replace(attrs, mode="clip"))


def _lie_inside(indices: np.ndarray, sizes: Sequence[Any]) -> bool:
    """Whether all indices do; several sizes are those of the elements of a tuple."""
    limits = np.array(sizes if len(sizes) > 1 else sizes[0])
    return bool(np.all((-limits <= indices) & (indices < limits)))


def _along_axis(attrs: Any, shape: Shape, indices: np.ndarray) -> Shape:
    return (shape[attrs.axis],)


def _of_tuples(attrs: Any, shape: Shape, indices: np.ndarray) -> Shape:
    batch = getattr(attrs, "batch_dims", 0)
    return shape[batch : batch + indices.shape[-1]]


# The sizes of the dimensions that the second operand of each operator points into.
_SIZES: dict[str, Callable[[Any, Shape, np.ndarray], Shape]] = {
    "gather": _along_axis,
    "gather_elements": _along_axis,
    "scatter_elements": _along_axis,
    "gather_nd": _of_tuples,
    "scatter_nd": _of_tuples,
}
