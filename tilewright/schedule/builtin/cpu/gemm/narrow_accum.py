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
    facts_of,
    loop_of,
    reductions,
    spatial,
    sums_briefly,
    work,
)
from tilewright.schedule.builtin.cpu.gemm.k_blocked import (
    Depth,
    TileAxes,
    cut,
    in_vectors,
    schedule_partial,
)
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import RegisterTile, largest_divisor
from tilewright.schedule.builtin.cpu.parallelize import is_shared, share
from tilewright.schedule.schedule import Schedule

# Sums that take turns, so that half as many terms are added to each; registers hold no more.
CHAINS = 2
# Fewer terms gain nothing by it.
LEAST_CHAINED = 48


def brief_depth(block: Block) -> Depth | None:
    """How to cut a reduction whose products may be summed briefly; `None` where they may not.

    A reduction that need not be cut is one of no parts.
    """
    extents = [as_int(it.extent) or 0 for it in reductions(block)]
    found = accumulation_chunk(extents) if sums_briefly(block) else None
    if found is None:
        return None
    if found.inner == len(extents):
        return Depth(found.inner, 0, prod(extents))
    steps = prod(extents[len(extents) - found.inner :]) * found.part
    return Depth(found.inner, found.part, steps)


def chains(block: Block, lanes: int, by_lane: bool) -> int:
    """How many narrow sums each element has: each with fewer terms, which loses fewer digits."""
    depth = brief_depth(block)
    if depth is None or depth.steps < LEAST_CHAINED:
        return 1
    inside = depth.part if depth.inner == 0 else as_int(reductions(block)[-1].extent)
    return 1 if inside is None or inside % (lanes if by_lane else CHAINS) else CHAINS


def schedule_brief(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    tile: RegisterTile,
    depth: Depth,
    epilogue: Block,
    groups_of: int,
    edge: int,
) -> None:
    """Schedule a reduction that is padded to whole tiles and packed into panels.

    `groups_of` row tiles take turns with one panel after another; the last rows of all may have
    tiles of their own, at least `edge` high (0: they have not).
    """
    if tile.chains == 1 and depth.steps % tile.lanes:
        tile = replace(tile, by_lane=False)
    partial = _cut(sch, block, tile, depth)
    loops = {it.name: f"{block.name}.final.ax{d}" for d, it in enumerate(spatial(block))}
    blocks = f"{block.name}.final.ax{len(loops)}"
    groups: list[str] = []
    tiles: list[str] = []
    rows: list[str] = []
    if axes.row is not None:
        group, at, row = sch.split(loops[axes.row.name], [None, groups_of or 1, tile.rows])
        groups, tiles, rows = [group], [at], [row]
    panel, columns = sch.split(loops[axes.column.name], [None, tile.columns])
    vector, lane = sch.split(columns, [None, tile.lanes])
    outer = [*(loops[it.name] for it in axes.batch), *groups, panel, *tiles]
    sch.reorder(*outer, blocks, *rows, vector, lane)
    if depth.part == 0:
        sch.unroll(blocks)
        _schedule_turns(sch, block, partial, sch.compute_at(partial, outer[-1]), axes, tile, edge)
    else:
        _schedule_parts(sch, block, depth, partial, blocks, axes, tile, edge)
    in_vectors(sch, *rows, vector, lane)
    *written, last = sch.reverse_compute_at(epilogue.name, outer[-1])
    in_vectors(sch, *written, *sch.split(last, [None, tile.lanes]))
    _mark(sch, (*rows, *written), edge)
    sch.decompose_reduction(block.name, blocks)
    sch.set_scope(block.writes[0].buffer, "volatile" if depth.part else "register")
    if is_shared(sch, block.name, work(block)):
        share(sch, block.name, outer)


def _parts(block: Block, depth: Depth) -> tuple[int, int]:
    """How many blocks there are, and how many make a part, whose sums are narrow as well."""
    count = prod(as_int(it.extent) or 0 for it in reductions(block)) // depth.steps
    return count, largest_divisor(count, max(1, F16_MAX_TERMS // depth.steps))


def _cut(sch: Schedule, block: Block, tile: RegisterTile, depth: Depth) -> str:
    """Cut the reduction into turns, blocks or parts; the block that computes what is added up."""
    if depth.part == 0:
        return _take_turns(sch, block.name, tile)[0]
    count, together = _parts(block, depth)
    return cut(sch, block, depth, together if together < count else 1)


def _mark(sch: Schedule, rows: Sequence[str], edge: int) -> None:
    for loop in rows if edge else ():
        sch.annotate(loop, EDGE_ROWS.key, edge)


def _take_turns(sch: Schedule, name: str, tile: RegisterTile) -> tuple[str, ...]:
    """Let several narrow sums take turns; the block that forms them, its new loops."""
    block = facts_of(sch.func).block(name)
    steps = [tile.lanes // tile.chains] if tile.by_lane else []
    *_, chain = sch.split(loop_of(reductions(block)[-1]), [None, *steps, tile.chains])
    chained: str = sch.rfactor(name, chain)
    sch.narrow_sum(chained)
    sch.narrow_sum(name)
    return chained, chain


def _schedule_parts(
    sch: Schedule,
    block: Block,
    depth: Depth,
    partial: str,
    at: str,
    axes: TileAxes,
    tile: RegisterTile,
    edge: int,
) -> None:
    """What is added up in the loop `at`: parts to a wide sum, or the blocks of the only part."""
    count, together = _parts(block, depth)
    if 1 < together < count:
        _schedule_part(sch, block, partial, at, axes, tile, edge)
        return
    _schedule_block(sch, block, partial, at, axes, tile, edge)
    if together == count:
        sch.narrow_sum(block.name)


def _schedule_part(
    sch: Schedule,
    block: Block,
    partial: str,
    at: str,
    axes: TileAxes,
    tile: RegisterTile,
    edge: int,
) -> None:
    """The sums of one tile over one part of the reduction, narrow, in memory."""
    loops = sch.compute_at(partial, at)
    inner = sch.rfactor(partial, loops[1 + len(spatial(block))])
    blocks = _add_up(sch, partial, at, tile, edge)
    _schedule_block(sch, block, inner, blocks, axes, tile, edge)
    sch.narrow_sum(partial)
    sch.decompose_reduction(partial, blocks)
    sch.set_scope(facts_of(sch.func).block(partial).writes[0].buffer, "volatile")


def _schedule_block(
    sch: Schedule,
    block: Block,
    partial: str,
    at: str,
    axes: TileAxes,
    tile: RegisterTile,
    edge: int,
) -> None:
    """The sums of one tile over one block of the reduction, narrow, in registers."""
    if tile.chains == 1:
        sch.narrow_sum(partial)
        schedule_partial(sch, block, partial, at, axes, tile, edge)
        return
    cuts = len(spatial(facts_of(sch.func).block(partial))) - len(spatial(block))
    loops = list(sch.compute_at(partial, at))
    chained, chain = _take_turns(sch, partial, tile)
    around = [loop.name for loop in loops_above(sch.func, chained)]
    outer = (*loops[:cuts], chain)
    inner = [name for name in around[around.index(at) + 1 :] if name not in outer]
    _schedule_turns(sch, block, chained, (chain, *inner), axes, tile, edge)
    added = _add_up(sch, partial, at, tile, edge)
    sch.unroll(added)
    sch.decompose_reduction(partial, added)
    sch.set_scope(facts_of(sch.func).block(partial).writes[0].buffer, "register")


def _schedule_turns(
    sch: Schedule,
    block: Block,
    chained: str,
    loops: Sequence[str],
    axes: TileAxes,
    tile: RegisterTile,
    edge: int,
) -> None:
    """Sums that take turns: `loops` are those over them, over the tile, and of the reduction."""
    chain, *inside = loops
    own = dict(zip((it.name for it in spatial(block)), inside, strict=False))
    reduced = inside[len(own) :]
    sums, steps = (reduced[:-1], reduced[-1:]) if tile.by_lane else (reduced, [])
    vector, lane = sch.split(own.pop(axes.column.name), [None, tile.lanes])
    rows = [] if axes.row is None else [own.pop(axes.row.name)]
    sch.reorder(*own.values(), *sums, *steps, chain, *rows, vector, lane)
    in_vectors(sch, *steps, chain, *rows, vector, lane)
    _mark(sch, rows, edge)
    sch.decompose_reduction(chained, sums[0])
    written = facts_of(sch.func).block(chained).writes[0].buffer
    sch.set_scope(written, "register")


def _add_up(sch: Schedule, partial: str, at: str, tile: RegisterTile, edge: int) -> str:
    """The sum of what a reduction was cut into; the loop over that. Axes of one step have none."""
    above = [loop.name for loop in loops_above(sch.func, partial)]
    *rows, columns, added = above[above.index(at) + 1 :]
    vector, lane = sch.split(columns, [None, tile.lanes])
    sch.reorder(added, *rows, vector, lane)
    in_vectors(sch, *rows, vector, lane)
    _mark(sch, rows, edge)
    return str(added)
