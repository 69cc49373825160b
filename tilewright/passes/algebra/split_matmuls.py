"""A product that is only read in slices becomes one product for each slice.

    %1 = matmul(%x, %w)                          %2 = matmul(%x, %w[:, :768])
    %2 = slice(%1) {..., 0:768}         →        %3 = matmul(%x, %w[:, 768:])
    %3 = slice(%1) {..., 768:1536}

The weights are constants, so their slices are views. Nothing is computed twice: slices that overlap
are left alone, and so is a product with a reader of the whole.
"""

from __future__ import annotations

from itertools import pairwise

from tilewright.arith.expr import Expr, as_int, const
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.tensor.slicing import SliceAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

ZERO = const(0)


def split_matmuls(graph: Graph, context: PassContext) -> Graph:
    """Divide products with constant weights that are only read in disjoint slices."""
    wanted = {n.name for n in graph.nodes if n.op in ("matmul", "add") and _in_slices(graph, n)}
    if not wanted:
        return graph
    return rewrite_graph(graph, lambda g, n: _split(g, n, wanted))


def _in_slices(graph: Graph, n: Node) -> bool:
    """Whether all readers of a value slice its last axis, each another part."""
    if n.name in graph.output_set:
        return False
    ranges = [_columns(graph, user) for user in graph.consumers.get(n.name, ())]
    known = sorted(r for r in ranges if r is not None)
    if len(known) != len(ranges) or len(known) < 2:
        return False
    return all(a[1] <= b[0] for a, b in pairwise(known))


def _columns(graph: Graph, n: Node) -> tuple[int, int] | None:
    """The part of the last axis that a slice takes, `None` if the node does anything else."""
    attrs = n.attrs
    if not isinstance(attrs, SliceAttrs) or set(attrs.steps) != {1}:
        return None
    shape = graph.tensor_type(n.inputs[0]).shape
    whole = all(s is ZERO for s in attrs.starts[:-1]) and attrs.stops[:-1] == shape[:-1]
    bounds = as_int(attrs.starts[-1]), as_int(attrs.stops[-1])
    if not whole or bounds[0] is None or bounds[1] is None or not _inside(bounds, shape[-1]):
        return None
    return bounds[0], bounds[1]


def _inside(bounds: tuple[int | None, int | None], size: Expr) -> bool:
    start, stop, limit = *bounds, as_int(size)
    return (
        start is not None and stop is not None and limit is not None and 0 <= start < stop <= limit
    )


def _split(g: Rewriter, n: Node, wanted: set[str]) -> str | None:
    if not isinstance(n.attrs, SliceAttrs) or n.inputs[0] not in wanted:
        return None
    columns = slice(as_int(n.attrs.starts[-1]), as_int(n.attrs.stops[-1]))
    product, bias = g.producer(n.inputs[0]), None
    if product is not None and product.op == "add":
        bias = g.constant_data(product.inputs[1])
        product = g.producer(product.inputs[0]) if bias is not None else None
    weights = None if product is None else g.constant_data(product.inputs[-1])
    if product is None or product.op != "matmul" or weights is None:
        return None
    result = g.add("matmul", product.inputs[0], g.constant(weights[..., columns]))
    if bias is None:
        return result
    part = bias if bias.ndim == 0 or bias.shape[-1] == 1 else bias[..., columns]
    return g.add("add", result, g.constant(part))
