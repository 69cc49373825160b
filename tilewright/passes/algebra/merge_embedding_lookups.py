"""Merge embedding lookups: gathers from several tables that are concatenated become one gather.

    %1 = gather(%t1, %i[:, 0:1])                    %j = index_positions(%i, [m, n]) + [0, m]
    %2 = gather(%t2, %i[:, 1:2])             →      %y = gather([%t1; %t2], %j)
    %y = concat(%1, %2) {axis=1}                    m rows of %t1, n of %t2

Recommendation models have dozens of tables, each with a launch or a parallel loop of its own.
An index counts from the end of its own table where it is negative, and is checked against it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tilewright.arith.expr import Expr, as_int
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ops.tensor.indexing import GatherAttrs, IndexPositionsAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph


def merge_embedding_lookups(graph: Graph, context: PassContext) -> Graph:
    """Look rows of several tables up in one, where they are joined."""
    return rewrite_graph(graph, _joined, of=("gather",))


@dataclass(frozen=True)
class _LookUp:
    """Rows of a constant table at a part of some indices: `width` of them along the axis."""

    table: np.ndarray
    indices: str
    part: SliceAttrs
    width: int
    node: str


def _joined(g: Rewriter, n: Node) -> str | None:
    if not isinstance(n.attrs, ConcatAttrs):
        return None
    axis = n.attrs.axis % n.type.rank
    found = [_look_up(g, value, axis) for value in n.inputs]
    parts: list[str] = []
    stop = 0
    while stop < len(found):
        start, stop = stop, stop + 1
        while stop < len(found) and _goes_on(found[stop - 1], found[stop], axis):
            stop += 1
        run = [one for one in found[start:stop] if one is not None]
        parts.append(_together(g, run, axis) if stop - start > 1 else n.inputs[start])
    if len(parts) == len(found):
        return None
    return g.add("concat", *parts, attrs=n.attrs) if len(parts) > 1 else parts[0]


def _look_up(g: Rewriter, value: str, axis: int) -> _LookUp | None:
    """What a value looks up, if nothing else needs it, or the table."""
    n = g.producer(value)
    if n is None or n.attrs != GatherAttrs(0) or g.use_count(value) != 1:
        return None
    table, part = g.constant_data(n.inputs[0]), g.producer(n.inputs[1])
    if table is None or table.ndim != 2 or g.use_count(n.inputs[0]) != 1 or part is None:
        return None
    if not isinstance(part.attrs, SliceAttrs) or axis >= part.type.rank:
        return None
    width = as_int(part.type.shape[axis])
    if set(part.attrs.steps) != {1} or width is None:
        return None
    return _LookUp(table, part.inputs[0], part.attrs, width, n.loc.node)


def _goes_on(one: _LookUp | None, other: _LookUp | None, axis: int) -> bool:
    """Whether two look-ups are at neighbouring parts of the same indices."""
    if one is None or other is None or one.indices != other.indices:
        return False
    a, b = one.part, other.part
    near = b.starts == _with(a.starts, axis, a.stops[axis])
    return near and a.stops == _with(b.stops, axis, a.stops[axis]) and a.inside == b.inside


def _with(values: Sequence[Expr], axis: int, value: Expr) -> tuple[Expr, ...]:
    return (*values[:axis], value, *values[axis + 1 :])


def _together(g: Rewriter, run: Sequence[_LookUp], axis: int) -> str:
    """All rows that some look-ups side by side have."""
    first, last = run[0], run[-1]
    attrs = replace(first.part, stops=_with(first.part.stops, axis, last.part.stops[axis]))
    indices = g.add("slice", first.indices, attrs=attrs)
    widths, rows = [x.width for x in run], [len(x.table) for x in run]
    shape = [-1 if d == axis else 1 for d in range(g.type(indices).rank)]

    def for_each(numbers: Sequence[int]) -> str:
        return g.constant(np.repeat(numbers, widths).astype(np.int64).reshape(shape))

    # An index outside is reported with the size of its table, and all nodes that it may be of.
    loc = replace(g.loc, node=f"{first.node} to {last.node}")
    inside = g.add("index_positions", indices, for_each(rows), attrs=IndexPositionsAttrs(), loc=loc)
    offsets = for_each([0, *np.cumsum(rows)[:-1].tolist()])
    table = g.constant(np.concatenate([x.table for x in run]))
    return g.add("gather", table, g.add("add", inside, offsets), attrs=GatherAttrs(0, "clip"))
