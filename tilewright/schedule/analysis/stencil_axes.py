"""The axes of a stencil: a reduction over windows of single channels, as pooling is."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.expr import Binary, Expr, Load, Var, as_int
from tilewright.arith.walk import free_vars, subexpressions
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    axis_names,
    flat_stride,
    is_simple,
    reads_of,
    reductions,
    spatial,
    uses,
)

# Taps that may be unrolled.
MAX_TAPS = 8


@dataclass(frozen=True)
class StencilAxes:
    """The axes of a stencil: vectors along `column`, tiles along `row`.

    `line` is the length of an image line, 0 where it is symbolic. `data` is what the window moves
    over; `padding` the block that pads it, if one does.
    """

    column: Iter
    row: Iter
    line: int
    batch: tuple[Iter, ...]
    data: Load
    padding: Block | None


def match_stencil(block: Block, graph: BlockGraph, constants: frozenset[str]) -> StencilAxes | None:
    """The axes of a reduction over windows of single channels, `None` if it is none."""
    axes = spatial(block)
    if not (is_simple(block) and block.init is not None and len(axes) > 1 and reductions(block)):
        return None
    reads = reads_of(block)
    stencils = [r for r in reads if _is_stencil(r, block)]
    if len(stencils) != 1 or not all(r is stencils[0] or r.buffer in constants for r in reads):
        return None
    data, column, row = stencils[0], axes[-1], axes[-2]
    if not all(uses(data, it.name) for it in axes) or data.mask is not None:
        return None
    stride = flat_stride(data, graph.buffers[data.buffer], column.name)
    last = as_int(reductions(block)[-1].extent)
    if stride is None or stride < 1 or last is None or last > MAX_TAPS:
        return None
    before = graph.blocks[: [b.name for b in graph.blocks].index(block.name)]
    if any(b.writes[0].buffer != data.buffer for b in before):
        return None
    line = row_period(data, row) or as_int(row.extent) or 0
    found = StencilAxes(column, row, line, axes[:-2], data, before[0] if before else None)
    return found if line or not moves_along_lanes(found, block) else None


def _is_stencil(load: Load, block: Block) -> bool:
    """Whether an index of the load depends on an output axis and on a tap."""
    windows, taps = set(axis_names(spatial(block))), set(axis_names(reductions(block)))
    return any(free_vars(i) & windows and free_vars(i) & taps for i in load.indices)


def row_period(load: Load, row: Iter) -> int:
    """The length of a line, where lines are fused into one axis; 0 if they are not."""
    found = {
        as_int(e.b) or 0
        for index in load.indices
        for e in subexpressions(index)
        if isinstance(e, Binary) and e.op == "mod" and e.a is Var(row.name)
    }
    return found.pop() if len(found) == 1 else 0


def moves_along_lanes(axes: StencilAxes, block: Block) -> bool:
    """Whether windows move along the lanes: padding is then a condition on lanes."""
    taps = set(axis_names(reductions(block)))
    return any(axes.column.name in free_vars(i) and free_vars(i) & taps for i in axes.data.indices)


def row_step(axes: StencilAxes) -> int:
    """The stride of the data along a line, from one row of a tile to the next."""
    names: set[Expr] = {Var(axes.row.name)}
    if axes.line:
        names.add(Var(axes.row.name) % axes.line)
    for index in axes.data.indices:
        for e in subexpressions(index):
            if isinstance(e, Binary) and e.op == "mul" and e.a in names:
                return as_int(e.b) or 1
    return 1
