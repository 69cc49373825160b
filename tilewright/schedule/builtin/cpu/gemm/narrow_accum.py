"""Register tiles of sums formed in a narrow type, for a few terms at a time.

    parallel (batch, row group, panel, row tile)
      S = 0                                                   one tile of sums, wide, near
      for each part of the reduction
        T = 0                                                 one tile of sums, narrow, near
        for each block of the part
          C = 0; for k in the block: C += A[row, k] * B[k, columns]       registers, narrow
          T += C
        S += wide(T)
      out = epilogue(S)

A reduction of one part has no wide sums, and one of few terms needs no blocks: its sums leave the
registers as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tilewright.arith.expr import as_int
from tilewright.ir.loop.annotations import EDGE_ROWS
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops_above
from tilewright.ops.accumulation import F16_MAX_TERMS, accumulation_chunk
from tilewright.schedule.analysis.blocks import (
    allows_narrow_accumulation,
    block_graph,
    loop_of,
    op_count,
    reductions,
    spatial,
)
from tilewright.schedule.analysis.tile_axes import TileAxes
from tilewright.schedule.builtin.cpu.gemm.k_blocked import (
    KBlock,
    cut,
    in_vectors,
    schedule_partial,
)
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import Microkernel, largest_divisor
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.schedule import Schedule

# Sums that take turns, so that half as many terms are added to each; registers hold no more.
ACCUMULATORS = 2
# Fewer terms gain nothing by it.
MIN_SPLIT_K_STEPS = 48


def narrow_k_block(block: Block) -> KBlock | None:
    """How to cut a reduction whose products may be summed briefly; `None` where they may not.

    A reduction that need not be cut is one of no parts.
    """
    extents = [as_int(it.extent) or 0 for it in reductions(block)]
    found = accumulation_chunk(extents) if allows_narrow_accumulation(block) else None
    if found is None:
        return None
    if found.inner == len(extents):
        return KBlock(found.inner, 0, prod(extents))
    steps = prod(extents[len(extents) - found.inner :]) * found.part
    return KBlock(found.inner, found.part, steps)


def accumulator_count(block: Block, lanes: int, by_lane: bool) -> int:
    """How many narrow sums each element has: each with fewer terms, which loses fewer digits."""
    k_block = narrow_k_block(block)
    if k_block is None or k_block.kc < MIN_SPLIT_K_STEPS:
        return 1
    inside = k_block.factor if k_block.inner == 0 else as_int(reductions(block)[-1].extent)
    return 1 if inside is None or inside % (lanes if by_lane else ACCUMULATORS) else ACCUMULATORS


def schedule_narrow_accum(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    tile: Microkernel,
    k_block: KBlock,
    epilogue: Block,
    groups_of: int,
    edge: int,
) -> None:
    """Schedule a reduction that is padded to whole tiles and packed into panels.

    `groups_of` row tiles take turns with one panel after another; the last rows of all may have
    tiles of their own, at least `edge` high (0: they have not).
    """
    if tile.accumulators == 1 and k_block.kc % tile.lanes:
        tile = replace(tile, lane_fma=False)
    partial = _cut(sch, block, tile, k_block)
    loops = {it.name: f"{block.name}.final.ax{d}" for d, it in enumerate(spatial(block))}
    blocks = f"{block.name}.final.ax{len(loops)}"
    groups: list[str] = []
    tiles: list[str] = []
    rows: list[str] = []
    if axes.m is not None:
        group, at, row = sch.split(loops[axes.m.name], [None, groups_of or 1, tile.mr])
        groups, tiles, rows = [group], [at], [row]
    panel, columns = sch.split(loops[axes.n.name], [None, tile.nr])
    vector, lane = sch.split(columns, [None, tile.lanes])
    outer = [*(loops[it.name] for it in axes.batch), *groups, panel, *tiles]
    sch.reorder(*outer, blocks, *rows, vector, lane)
    if k_block.factor == 0:
        sch.unroll(blocks)
        _schedule_turns(sch, block, partial, sch.compute_at(partial, outer[-1]), axes, tile, edge)
    else:
        _schedule_parts(sch, block, k_block, partial, blocks, axes, tile, edge)
    in_vectors(sch, *rows, vector, lane)
    *written, last = sch.reverse_compute_at(epilogue.name, outer[-1])
    in_vectors(sch, *written, *sch.split(last, [None, tile.lanes]))
    _mark(sch, (*rows, *written), edge)
    sch.decompose_reduction(block.name, blocks)
    sch.set_scope(block.writes[0].buffer, "volatile" if k_block.factor else "register")
    if is_parallel(sch, block.name, op_count(block)):
        fuse_parallel(sch, block.name, outer)


def _parts(block: Block, k_block: KBlock) -> tuple[int, int]:
    """How many blocks there are, and how many make a part, whose sums are narrow as well."""
    count = prod(as_int(it.extent) or 0 for it in reductions(block)) // k_block.kc
    return count, largest_divisor(count, max(1, F16_MAX_TERMS // k_block.kc))


def _cut(sch: Schedule, block: Block, tile: Microkernel, k_block: KBlock) -> str:
    """Cut the reduction into turns, blocks or parts; the block that computes what is added up."""
    if k_block.factor == 0:
        return _split_accumulators(sch, block.name, tile)[0]
    count, together = _parts(block, k_block)
    return cut(sch, block, k_block, together if together < count else 1)


def _mark(sch: Schedule, rows: Sequence[str], edge: int) -> None:
    for loop in rows if edge else ():
        sch.annotate(loop, EDGE_ROWS.key, edge)


def _split_accumulators(sch: Schedule, name: str, tile: Microkernel) -> tuple[str, ...]:
    """Let several narrow sums take turns; the block that forms them, its new loops."""
    block = block_graph(sch.func).block(name)
    steps = [tile.lanes // tile.accumulators] if tile.lane_fma else []
    *_, chain = sch.split(loop_of(reductions(block)[-1]), [None, *steps, tile.accumulators])
    chained: str = sch.rfactor(name, chain)
    sch.narrow_accumulator(chained)
    sch.narrow_accumulator(name)
    return chained, chain


def _schedule_parts(
    sch: Schedule,
    block: Block,
    k_block: KBlock,
    partial: str,
    at: str,
    axes: TileAxes,
    tile: Microkernel,
    edge: int,
) -> None:
    """What is added up in the loop `at`: parts to a wide sum, or the blocks of the only part."""
    count, together = _parts(block, k_block)
    if 1 < together < count:
        _schedule_part(sch, block, partial, at, axes, tile, edge)
        return
    _schedule_block(sch, block, partial, at, axes, tile, edge)
    if together == count:
        sch.narrow_accumulator(block.name)


def _schedule_part(
    sch: Schedule,
    block: Block,
    partial: str,
    at: str,
    axes: TileAxes,
    tile: Microkernel,
    edge: int,
) -> None:
    """The sums of one tile over one part of the reduction, narrow, in memory."""
    loops = sch.compute_at(partial, at)
    inner = sch.rfactor(partial, loops[1 + len(spatial(block))])
    blocks = _add_up(sch, partial, at, tile, edge)
    _schedule_block(sch, block, inner, blocks, axes, tile, edge)
    sch.narrow_accumulator(partial)
    sch.decompose_reduction(partial, blocks)
    sch.set_scope(block_graph(sch.func).block(partial).writes[0].buffer, "volatile")


def _schedule_block(
    sch: Schedule,
    block: Block,
    partial: str,
    at: str,
    axes: TileAxes,
    tile: Microkernel,
    edge: int,
) -> None:
    """The sums of one tile over one block of the reduction, narrow, in registers."""
    if tile.accumulators == 1:
        sch.narrow_accumulator(partial)
        schedule_partial(sch, block, partial, at, axes, tile, edge)
        return
    cuts = len(spatial(block_graph(sch.func).block(partial))) - len(spatial(block))
    loops = list(sch.compute_at(partial, at))
    chained, chain = _split_accumulators(sch, partial, tile)
    around = [loop.name for loop in loops_above(sch.func, chained)]
    outer = (*loops[:cuts], chain)
    inner = [name for name in around[around.index(at) + 1 :] if name not in outer]
    _schedule_turns(sch, block, chained, (chain, *inner), axes, tile, edge)
    added = _add_up(sch, partial, at, tile, edge)
    sch.unroll(added)
    sch.decompose_reduction(partial, added)
    sch.set_scope(block_graph(sch.func).block(partial).writes[0].buffer, "register")


def _schedule_turns(
    sch: Schedule,
    block: Block,
    chained: str,
    loops: Sequence[str],
    axes: TileAxes,
    tile: Microkernel,
    edge: int,
) -> None:
    """Sums that take turns: `loops` are those over them, over the tile, and of the reduction."""
    chain, *inside = loops
    own = dict(zip((it.name for it in spatial(block)), inside, strict=False))
    reduced = inside[len(own) :]
    sums, steps = (reduced[:-1], reduced[-1:]) if tile.lane_fma else (reduced, [])
    vector, lane = sch.split(own.pop(axes.n.name), [None, tile.lanes])
    rows = [] if axes.m is None else [own.pop(axes.m.name)]
    sch.reorder(*own.values(), *sums, *steps, chain, *rows, vector, lane)
    in_vectors(sch, *steps, chain, *rows, vector, lane)
    _mark(sch, rows, edge)
    sch.decompose_reduction(chained, sums[0])
    written = block_graph(sch.func).block(chained).writes[0].buffer
    sch.set_scope(written, "register")


def _add_up(sch: Schedule, partial: str, at: str, tile: Microkernel, edge: int) -> str:
    """The sum of what a reduction was cut into; the loop over that. Axes of one step have none."""
    above = [loop.name for loop in loops_above(sch.func, partial)]
    *rows, columns, added = above[above.index(at) + 1 :]
    vector, lane = sch.split(columns, [None, tile.lanes])
    sch.reorder(added, *rows, vector, lane)
    in_vectors(sch, *rows, vector, lane)
    _mark(sch, rows, edge)
    return str(added)
