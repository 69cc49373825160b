"""Register tiles of reductions too long for the nearest cache: the reduction is cut into blocks.

    parallel (batch, row group, panel group)
      S = 0                                                  the group's sums, near
      for each block of the reduction
        for each column panel and row tile of the groups
          C = 0; for k in the block: C += A[row, k] * B[k, columns]       registers
          S += C
      out = epilogue(S)

One block of a panel of B stays in the nearest cache for all row tiles, and a block of the rows of A
in the next one for all panels. It costs a load and a store of every sum for each block.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.arith.expr import as_int
from tilewright.ir.loop.annotations import EDGE_ROWS
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    block_graph,
    loop_of,
    op_count,
    reductions,
    spatial,
    value_of,
)
from tilewright.schedule.analysis.tile_axes import TileAxes
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import (
    Microkernel,
    divisors,
    largest_divisor,
    nearest_divisor,
)
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel, load_imbalance
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# Shorter blocks would spend more on loading and storing the sums than they save.
MIN_KC = 384
# Blocks shorter than this are never any good.
SHORTEST = 32
# Column panels that share a block of rows; more would leave too little work for other threads.
PANELS_TOGETHER = 4
TASKS_PER_CORE = 4
# How many times as long as a row tile takes it takes to load the block of a panel that serves it.
LOADING = 2.0


@dataclass(frozen=True)
class KBlock:
    """A block of `kc` steps of K: `factor` iterations of one loop, and all `inner` loops in it."""

    inner: int
    factor: int
    kc: int


def default_kc(block: Block, tile: Microkernel, target: CpuTarget) -> KBlock | None:
    """How to cut a reduction; `None` if it is short enough to be done at once.

    A block is whole inner loops (the channels under one tap of a filter), or an equal part of one,
    such that its part of the panel takes half of the nearest cache. Where vectors are so wide that
    even the shortest block is more than that cache, panels are left whole in the second one.
    """
    extents = [as_int(it.extent) or 0 for it in reductions(block)]
    step = tile.nr * value_of(block).dtype.bytes
    most = max(MIN_KC, target.l1 // 2 // step)
    if prod(extents) <= 3 * most // 2:  # also where a size is symbolic
        return None
    if most * step > target.l1 and prod(extents) * step <= target.l2 // 4:
        return None
    inner = 0
    while prod(extents[len(extents) - inner - 1 :]) <= most:
        inner += 1
    if inner:
        return KBlock(inner, 1, prod(extents[len(extents) - inner :]))
    part = largest_divisor(extents[-1], most)
    return KBlock(0, part, part) if part > most // 2 and part % tile.lanes == 0 else None


def choose_kc(
    sch: Schedule, block: Block, tile: Microkernel, target: CpuTarget, reused: bool
) -> KBlock | None:
    """How to cut a reduction, `None` for not at all; by default only where blocks are `reused`."""
    k_block = default_kc(block, tile, target) if reused else None
    default = (0, 0) if k_block is None else (k_block.inner, k_block.factor)
    inner, part = sch.choose(f"{block.name}.kc", default, lambda: _depths(block, tile))
    return KBlock(inner, part, _steps(block, inner, part)) if part else None


def _depths(block: Block, tile: Microkernel) -> list[tuple[int, int]]:
    """All ways to cut, `(inner, part)` each: whole inner loops, and equal parts of the next."""
    extents = [as_int(it.extent) or 0 for it in reductions(block)]
    total = prod(extents)
    found = [
        (inner, part)
        for inner in range(len(extents))
        for part in divisors(extents[len(extents) - 1 - inner])
        if total and SHORTEST <= _steps(block, inner, part) < total
    ]
    whole = [c for c in found if c[0] or c[1] % (tile.lanes if tile.lane_fma else 1) == 0]
    return [(0, 0), *sorted(whole, key=lambda c: _steps(block, *c))]


def _steps(block: Block, inner: int, part: int) -> int:
    """Steps of `part` iterations of a loop with so many loops inside it."""
    extents = [as_int(it.extent) or 0 for it in reductions(block)]
    return part * prod(extents[len(extents) - inner :])


def schedule_k_blocked(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    tile: Microkernel,
    k_block: KBlock,
    epilogue: Block,
    target: CpuTarget,
) -> None:
    """Schedule a reduction that is padded to whole tiles and packed into panels."""
    partial = cut(sch, block, k_block)
    loops = {it.name: f"{block.name}.final.ax{d}" for d, it in enumerate(spatial(block))}
    blocks = f"{block.name}.final.ax{len(loops)}"
    assert axes.m is not None
    tiles, panels = _together(sch, block, axes, tile, k_block, target)
    row_group, row_tile, rows = sch.split(loops[axes.m.name], [None, tiles, tile.mr])
    panel_group, panel, columns = sch.split(loops[axes.n.name], [None, panels, tile.nr])
    vector, lane = sch.split(columns, [None, tile.lanes])
    groups, order = [row_group, panel_group], [panel, row_tile]
    if sch.choose(f"{block.name}.block_order", "rows", lambda: ("rows", "panels")) == "panels":
        groups.reverse()
    if sch.choose(f"{block.name}.stationary", "panel", lambda: ("panel", "rows")) == "rows":
        order.reverse()
    outer = [*(loops[it.name] for it in axes.batch), *groups]
    sch.reorder(*outer, blocks, *order, rows, vector, lane)
    schedule_partial(sch, block, partial, order[-1], axes, tile)
    in_vectors(sch, rows, vector, lane)
    written = sch.reverse_compute_at(epilogue.name, outer[-1])
    in_vectors(sch, *sch.split(written[-1], [None, tile.lanes]))
    sch.decompose_reduction(block.name, blocks)
    sch.set_scope(block.writes[0].buffer, "global")
    if is_parallel(sch, block.name, op_count(block)):
        fuse_parallel(sch, block.name, outer)


def in_vectors(sch: Schedule, *loops: str) -> None:
    """Write loops out, the innermost in vectors."""
    for loop in loops[:-1]:
        sch.unroll(loop)
    sch.vectorize(loops[-1])


def cut(sch: Schedule, block: Block, k_block: KBlock, together: int = 1) -> str:
    """One partial result for every so many blocks of the reduction; what computes them."""
    sums = [loop_of(it) for it in reductions(block)]
    outer = sums[: len(sums) - k_block.inner]
    if k_block.factor > 1:
        outer[-1], _ = sch.split(outer[-1], [None, k_block.factor])
    blocks = sch.fuse(*outer) if len(outer) > 1 else outer[0]
    if together > 1:
        blocks, _ = sch.split(blocks, [None, together])
    name: str = sch.rfactor(block.name, blocks)
    return name


def _together(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    tile: Microkernel,
    k_block: KBlock,
    target: CpuTarget,
) -> tuple[int, int]:
    """How many row tiles and column panels make a group.

    A block of the group's rows takes a quarter of the second cache; its sums are far smaller. Fewer
    rows are better than threads that have no group.
    """
    assert axes.m is not None
    tiles = -(-(as_int(axes.m.extent) or 1) // tile.mr)
    panels = -(-(as_int(axes.n.extent) or 1) // tile.nr)
    room = target.l2 // 4 // (k_block.kc * value_of(block).dtype.bytes * tile.mr)
    batch = prod(as_int(it.extent) or 1 for it in axes.batch)

    def cost(rows: int) -> float:
        groups = batch * (tiles // rows) * panels
        return load_imbalance(groups, target.cores) * (1 + LOADING / rows)

    most = nearest_divisor(tiles, max(1, room))
    together = min((d for d in divisors(tiles) if d <= most), key=cost)
    together = sch.choose(f"{block.name}.mc_tiles", together, lambda: divisors(tiles))
    tasks = batch * (tiles // together) * panels
    most = min(PANELS_TOGETHER, max(1, tasks // (TASKS_PER_CORE * target.cores)))
    default = largest_divisor(panels, most)
    return together, sch.choose(f"{block.name}.nc_panels", default, lambda: divisors(panels))


def schedule_partial(
    sch: Schedule,
    block: Block,
    partial: str,
    at: str,
    axes: TileAxes,
    tile: Microkernel,
    edge: int = 0,
) -> None:
    """The sums of one tile over one block of the reduction, in registers.

    The last rows of all may have tiles of their own, at least `edge` high (0: they have not).
    """
    names = [it.name for it in spatial(block)]
    cuts = len(spatial(block_graph(sch.func).block(partial))) - len(names)
    loops = list(sch.compute_at(partial, at))
    own = dict(zip(names, loops[cuts:], strict=False))
    sums = loops[cuts + len(names) :]
    vector, lane = sch.split(own.pop(axes.n.name), [None, tile.lanes])
    rows = [] if axes.m is None else [own.pop(axes.m.name)]
    steps = []
    if tile.lane_fma:
        sums[-1], inner = sch.split(sums[-1], [None, tile.lanes])
        steps = [inner]
    sch.reorder(*loops[:cuts], *own.values(), *sums, *steps, *rows, vector, lane)
    in_vectors(sch, *steps, *rows, vector, lane)
    for loop in rows if edge else ():
        sch.annotate(loop, EDGE_ROWS.key, edge)
    sch.decompose_reduction(partial, sums[0])
    sch.set_scope(block_graph(sch.func).block(partial).writes[0].buffer, "register")
