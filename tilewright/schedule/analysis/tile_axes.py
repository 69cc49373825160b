"""The axes of a reduction that is computed in register tiles: M, N, batch, and the operand B.

A GEMM is one; so are convolutions, pooling and column sums, which `gemm.py` does not match.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Load
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    accumulator_dtype,
    axis_names,
    flat_index,
    is_plain,
    is_simple,
    is_unit,
    reads_of,
    reductions,
    spatial,
    typical_extent,
    uses,
)


@dataclass(frozen=True)
class TileAxes:
    """The axes and the B operand of a tiled reduction.

    `n`, the last output axis, is laid over SIMD lanes; `m` over the rows of a tile. `packed_b` is
    the operand that moves along N and is shared by all rows, which is packed into panels; `None`
    where every operand moves along N (depthwise convolution, pooling).
    """

    n: Iter
    m: Iter | None
    batch: tuple[Iter, ...]
    packed_b: Load | None


def match_tile_axes(block: Block, graph: BlockGraph, constants: frozenset[str]) -> TileAxes | None:
    """The axes of a reduction, `None` if it cannot be tiled along its last axis."""
    axes = spatial(block)
    if not (is_simple(block) and block.init is not None and axes and reductions(block)):
        return None
    n = axes[-1]
    reads = reads_of(block)
    moving = [r for r in reads if uses(r, n.name)]
    fixed = [r for r in reads if not uses(r, n.name)]
    b = moving[0] if len(moving) == 1 and fixed else None
    if not moving:
        return None
    if b is None and not all(
        is_unit(r, graph, n.name) or (r.buffer in constants and is_plain(r, block)) for r in moving
    ):
        return None
    return tile_axes(block, b)


def tile_axes(block: Block, b: Load | None) -> TileAxes:
    """The axes of a block that is tiled along its last axis.

    M is the last of the others that `b` is not indexed by.
    """
    *axes, n = spatial(block)
    rows = [it for it in axes if b is None or not uses(b, it.name)]
    m = rows[-1] if rows else None
    return TileAxes(n, m, tuple(it for it in axes if it is not m), b)


def copies_b_for_one_row(axes: TileAxes, graph: BlockGraph, constants: frozenset[str]) -> bool:
    """Whether B would be transposed to be read once: a reduction along its rows needs no copy."""
    b = axes.packed_b
    return (
        b is not None
        and axes.m is None
        and b.buffer not in constants
        and not is_unit(b, graph, axes.n.name)
    )


def steps_of(block: Block) -> int:
    """K: how many steps the reduction has, symbolic sizes taken to be typical."""
    return prod(typical_extent(it.extent) for it in reductions(block))


def panels_bytes(block: Block, axes: TileAxes) -> int:
    """The bytes of all packed panels of B."""
    return steps_of(block) * typical_extent(axes.n.extent) * accumulator_dtype(block).bytes


def row_bytes(block: Block, axes: TileAxes, graph: BlockGraph) -> int:
    """The bytes between elements of A in neighbouring rows, 0 where sizes are not known."""
    if axes.packed_b is None or axes.m is None:
        return 0
    row, known, found = axes.m.name, {*axis_names(block.iters)}, [0]
    for load in reads_of(block):
        buffer = graph.buffers[load.buffer]
        flat = flat_index(load, buffer)
        names = free_vars(flat)
        if load is not axes.packed_b and row in names and names <= known:
            first, second = (evaluate(flat, dict.fromkeys(names, 0) | {row: n}) for n in (0, 1))
            found.append(abs(second - first) * buffer.dtype.bytes)
    return max(found)
