"""Who is who in a reduction that is computed in tiles: its columns, rows, batches and the panel."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Load, Var
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import (
    Facts,
    axis_names,
    flat_index,
    flat_stride,
    is_simple,
    reads_of,
    reductions,
    spatial,
    summed_type,
    typical_extent,
    uses,
)


@dataclass(frozen=True)
class Roles:
    """What the axes and operands of a tiled reduction do.

    `panel` is the operand that moves along the columns while all rows share it; `None` where every
    operand does (depthwise convolution, pooling).
    """

    column: Iter
    row: Iter | None
    batch: tuple[Iter, ...]
    panel: Load | None


def tile_roles(block: Block, facts: Facts, constants: frozenset[str]) -> Roles | None:
    """The roles of a reduction's axes, `None` if it cannot be tiled along its last axis."""
    axes = spatial(block)
    if not (is_simple(block) and block.init is not None and axes and reductions(block)):
        return None
    column = axes[-1]
    reads = reads_of(block)
    moving = [r for r in reads if uses(r, column.name)]
    fixed = [r for r in reads if not uses(r, column.name)]
    panel = moving[0] if len(moving) == 1 and fixed else None
    if not moving:
        return None
    if panel is None and not all(
        is_unit(r, facts, column.name) or (r.buffer in constants and is_plain(r, block))
        for r in moving
    ):
        return None
    rows = [it for it in axes[:-1] if panel is None or not uses(panel, it.name)]
    row = rows[-1] if rows else None
    return Roles(column, row, tuple(it for it in axes[:-1] if it is not row), panel)


def copies_for_one_row(roles: Roles, facts: Facts, constants: frozenset[str]) -> bool:
    """Whether an operand would be turned round to be read once: sums along its rows need not be."""
    panel = roles.panel
    return (
        panel is not None
        and roles.row is None
        and panel.buffer not in constants
        and not is_unit(panel, facts, roles.column.name)
    )


def steps_of(block: Block) -> int:
    """How many steps the reduction has, symbolic sizes taken to be typical."""
    return prod(typical_extent(it.extent) for it in reductions(block))


def panels_bytes(block: Block, roles: Roles) -> int:
    """What the panels of all columns take."""
    return steps_of(block) * typical_extent(roles.column.extent) * summed_type(block).bytes


def row_bytes(block: Block, roles: Roles, facts: Facts) -> int:
    """How far apart the scalars of neighbouring rows lie, 0 where sizes are not known."""
    if roles.panel is None or roles.row is None:
        return 0
    row, axes, found = roles.row.name, {*axis_names(block.iters)}, [0]
    for load in reads_of(block):
        buffer = facts.buffers[load.buffer]
        flat = flat_index(load, buffer)
        names = free_vars(flat)
        if load is not roles.panel and row in names and names <= axes:
            first, second = (evaluate(flat, dict.fromkeys(names, 0) | {row: n}) for n in (0, 1))
            found.append(abs(second - first) * buffer.dtype.bytes)
    return max(found)


def is_unit(load: Load, facts: Facts, axis: str) -> bool:
    """Whether the elements that follow each other along the axis lie beside each other."""
    return flat_stride(load, facts.buffers[load.buffer], axis) == 1


def is_plain(panel: Load, block: Block) -> bool:
    """Whether every index of the operand is an axis of its own."""
    names = set(axis_names(block.iters))
    axes = [i.name for i in panel.indices if isinstance(i, Var) and i.name in names]
    return len(set(axes)) == len(panel.indices) and panel.mask is None
