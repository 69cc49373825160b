"""`topk` with a large k becomes a sort of whole rows.

    %v, %i = topk(%x) {k=n}      →      %o = argsort_rows(%x)
                                        %i = slice(%o) {stops=[k]}
                                        %v = gather_elements(%x, %i)

`topk` inserts elements into an ordered list of `k`: fast for a few, but quadratic in `k`.
"""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, as_int, const, product
from tilewright.arith.simplify import simplify
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.op import normalize_axis
from tilewright.ops.tensor.argsort import ArgsortAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.slicing import SliceAttrs
from tilewright.ops.tensor.topk import TopKAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

# Taking an element from one of two runs costs about as much as moving so many up a list.
MERGE_STEP = 6.0
# How many times as long as the list a row is thought to be whose length is not known.
USUAL_ROW = 16


def topk_to_sort(graph: Graph, context: PassContext) -> Graph:
    """Sort where that is cheaper than to keep a list of the best."""
    return rewrite_graph(graph, _rule, of=("topk",))


def _rule(g: Rewriter, n: Node) -> tuple[str, str] | None:
    attrs = n.attrs
    if not isinstance(attrs, TopKAttrs):
        return None
    x = n.inputs[0]
    axis = normalize_axis("topk", attrs.axis, g.type(x).rank)
    if not _is_sorting_cheaper(simplify(attrs.k), g.type(x).shape[axis]):
        return None
    indices = _first(g, _order(g, x, axis, attrs.largest), axis, attrs.k)
    return g.add("gather_elements", x, indices, attrs=GatherAttrs(axis, "clip")), indices


def _is_sorting_cheaper(k: Expr, size: Expr) -> bool:
    wanted = as_int(k)
    if wanted is None:
        return k is size
    length = as_int(size)
    length = wanted * USUAL_ROW if length is None else length
    if wanted < 2:
        return False
    inserted = wanted * (1 + math.log(length / wanted))
    return inserted * wanted > MERGE_STEP * length * math.log2(length)


def _order(g: Rewriter, x: str, axis: int, largest: bool) -> str:
    """The places of the elements along an axis in their order, shaped like `x`."""
    rank = g.type(x).rank
    last = (*(d for d in range(rank) if d != axis), axis)
    if axis != rank - 1:
        x = g.add("transpose", x, attrs=TransposeAttrs(last))
    shape = g.type(x).shape
    rows = ReshapeAttrs((product(shape[:-1]), shape[-1], const(1)))
    order = g.add("argsort_rows", g.add("reshape", x, attrs=rows), attrs=ArgsortAttrs(largest))
    order = g.add("reshape", order, attrs=ReshapeAttrs(shape))
    if axis == rank - 1:
        return order
    back = tuple(last.index(d) for d in range(rank))
    return g.add("transpose", order, attrs=TransposeAttrs(back))


def _first(g: Rewriter, x: str, axis: int, count: Expr) -> str:
    """The first elements along an axis."""
    shape = g.type(x).shape
    if shape[axis] is count:
        return x
    stops = (*shape[:axis], count, *shape[axis + 1 :])
    attrs = SliceAttrs((const(0),) * len(shape), stops, (1,) * len(shape), inside=True)
    return g.add("slice", x, attrs=attrs)
