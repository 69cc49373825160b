"""Reductions in register tiles: GEMM, convolution, pooling, column sums.

The innermost output axis (N) is vectorized, the axis before it (M) gives the rows of a tile. The
accumulators of a tile stay in registers while the reduction runs; an epilogue then stores them.

    parallel (batch, column panel, row tile)
      C = 0                                 registers
      for k: C[rows, columns] += A[row, k] * B[k, columns]
      out[rows, columns] = epilogue(C)

A constant operand B is packed at compile time into panels of one tile's columns, so that it is read
sequentially; a computed operand that is not contiguous along N is packed into a workspace. Padded
rows and columns are computed from clamped loads and never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.arith.expr import Binary, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import subexpressions
from tilewright.ir.loop.annotations import FINITE_WEIGHTS, SKIP_PADDING, VERSIONED
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import (
    UNKNOWN_WORK,
    BlockGraph,
    accumulator_dtype,
    allows_narrow_accumulation,
    block_graph,
    flat_stride,
    is_unit,
    loop_of,
    op_count,
    reads_of,
    reductions,
    typical_extent,
)
from tilewright.schedule.analysis.padding_share import work_left
from tilewright.schedule.analysis.tile_axes import (
    TileAxes,
    panels_bytes,
    row_bytes,
    steps_of,
)
from tilewright.schedule.builtin.cpu.epilogue import (
    fuse_epilogue,
    fuse_through_memory,
    goes_through_memory,
    unroll_and_vectorize,
)
from tilewright.schedule.builtin.cpu.gemm.edge_tiles import are_pixels, choose_edge, mark_edges
from tilewright.schedule.builtin.cpu.gemm.k_blocked import schedule_k_blocked
from tilewright.schedule.builtin.cpu.gemm.kc_blocking import (
    accumulator_count,
    choose_group,
    choose_kc,
    has_k_blocks,
    narrow_k_block,
)
from tilewright.schedule.builtin.cpu.gemm.line_bands import LineBand
from tilewright.schedule.builtin.cpu.gemm.mc_blocking import (
    choose_mc,
    choose_transposed,
    split_rows,
)
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel, MicrokernelProblem
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import MAX_ROWS, choose_tile
from tilewright.schedule.builtin.cpu.gemm.pack_b import (
    PackedB,
    in_place_bytes,
    pack_at,
    pack_b,
    pack_first,
    packs_by_panel,
    row_tiles,
)
from tilewright.schedule.builtin.cpu.gemm.prefetching import (
    prefetch_at,
    prefetch_steps,
    prefetches_rows,
)
from tilewright.schedule.builtin.cpu.parallelize import PARALLEL_WORK, fuse_parallel, is_parallel
from tilewright.schedule.builtin.cpu.transpose import crossing_axis, transpose_at
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# Row tiles that must use a block of a panel for KC blocking to pay.
MIN_REUSE = 4
# Taps of a window in a line that are written out, each with an offset of its own.
MAX_UNROLLED_TAPS = 8
# The most rows of a tile whose addresses surely fit the registers.
MAX_ADDRESSES = 8
# Steps of K that may be unrolled where A is loaded by scalars.
STEPS = (1, 2, 4, 8)


def schedule_register_blocked(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    epilogue: Block,
    constants: frozenset[str],
    target: CpuTarget,
    band: LineBand | None = None,
) -> None:
    """Schedule a reduction and its epilogue, perhaps in bands of lines."""
    problem = _problem(sch, block, axes, constants, target)
    tile = choose_tile(sch, block.name, problem, target)
    b = pack_b(sch, block, axes, problem, tile, constants, target)
    prefetched = prefetch_steps(problem, tile, b.in_place, target)
    tiles = row_tiles(axes, tile)
    narrow = narrow_k_block(block)
    if narrow is not None and narrow.factor == 0 and tile.accumulators == 1:
        sch.narrow_accumulator(block.name)
    elif narrow is not None:
        pack_first(sch, b, axes, tile)
        together = choose_mc(sch, block, axes, tile, tiles, target)
        _pad(sch, block, axes, tile, together)
        least = _least_edge(block, axes, tile)
        edge = choose_edge(sch, block.name, axes.m, tile.mr, least)
        schedule_k_blocked(sch, block, axes, tile, narrow, epilogue, target, (together, 1), edge)
        return
    blocks_k = tiles and not b.in_place
    k_block = choose_kc(sch, block, tile, target, tiles >= MIN_REUSE) if blocks_k else None
    if k_block is not None:
        pack_first(sch, b, axes, tile)
        group = choose_group(sch, block, axes, tile, k_block, target)
        _pad(sch, block, axes, tile, group[0])
        schedule_k_blocked(sch, block, axes, tile, k_block, epilogue, target, group, 0, prefetched)
        return
    transposed = None
    if crossing_axis(epilogue, block_graph(sch.func), target) is not None:
        copy = sch.cache_write(block.name, "register")
        graph = block_graph(sch.func)
        block, epilogue, transposed = graph.block(block.name), graph.block(copy), epilogue.name
    _schedule_flat(
        sch, block, axes, problem, tile, tiles, epilogue, transposed, b, band, prefetched, target
    )


def _schedule_flat(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    problem: MicrokernelProblem,
    tile: Microkernel,
    tiles: int,
    epilogue: Block,
    transposed: str | None,
    b: PackedB,
    band: LineBand | None,
    prefetched: int,
    target: CpuTarget,
) -> None:
    """Tiles that go through all of K at once, perhaps `transposed` a group of rows at a time."""
    if transposed is None:
        together = choose_mc(sch, block, axes, tile, tiles, target)
    else:
        together = choose_transposed(sch, block, axes, tile, tiles, target)
    _pad(sch, block, axes, tile, together, in_place=b.in_place)
    row_group, row_tile, row_loops = split_rows(sch, axes, tile, together)
    panel_loop, column = sch.split(loop_of(axes.n), [None, tile.nr])
    vector, lane = sch.split(column, [None, tile.lanes])
    order = [panel_loop, *row_group, *row_tile]
    panels_first = False
    if transposed is None:
        panels_first = _panels_first(sch, block, axes, target)
        inner = [panel_loop, *row_tile] if panels_first else [*row_tile, panel_loop]
        order = [*row_group, *inner]
    batch = _batch_loops(sch, block, axes, band)
    outer = [*batch, *order]
    sums = _k_loops(sch, block, axes, b)
    steps = _window_steps(block, sums) if b.window else _unrolled_steps(sch, block, sums, tile)
    sch.reorder(*outer, *sums, *steps, *row_loops, vector, lane)
    if panels_first and together == tiles and packs_by_panel(b, problem, tile, target):
        pack_at(sch, b, axes, tile, panel_loop)
        shared = outer[: outer.index(panel_loop) + 1]
    else:
        pack_first(sch, b, axes, tile)
        shared = outer
    accumulators = block.writes[0].buffer
    if goes_through_memory(epilogue, tile.vectors, steps_of(block)):
        written = fuse_through_memory(sch, epilogue.name, accumulators, outer[-1], tile.lanes)
    else:
        written = fuse_epilogue(sch, epilogue.name, outer[-1], tile.lanes)
    if transposed is not None:
        transpose_at(sch, transposed, row_group[-1], target)
        shared = outer[: outer.index(row_group[-1]) + 1]
    if band is not None:
        band.copy_at(sch, batch[-2], target)
        shared = batch[:-1]
    least = _least_edge(block, axes, tile)
    mark_edges(sch, block.name, axes.m, tile.mr, least, [*row_loops, *written])
    unroll_and_vectorize(sch, *steps, *row_loops, vector, lane)
    if FINITE_WEIGHTS.is_on(sch.func):
        sch.annotate(sums[-1], SKIP_PADDING.key, 1)
    prefetch_at(sch, sums[-1], prefetched, prefetches_rows(problem, tile, target))
    sch.decompose_reduction(block.name, sums[0])
    sch.set_scope(accumulators, "register")
    if is_parallel(sch, block.name, op_count(block)):
        loop = fuse_parallel(sch, block.name, shared)
        if _has_whole_tiles(axes, tile, b):
            sch.annotate(loop, VERSIONED.key, 1)


def _has_whole_tiles(axes: TileAxes, tile: Microkernel, b: PackedB) -> bool:
    """Whether it pays to test whether a tile is whole.

    Full panels of what is read in place need no masks. Rows that are surely there are at constant
    distances; where they may be clamped, each has an address of its own, which are soon too many.
    """
    ragged = typical_extent(axes.n.extent) % tile.nr != 0 and b.in_place and not b.window
    rows = None if axes.m is None else as_int(axes.m.extent)
    return ragged or (rows is not None and rows % tile.mr != 0 and tile.mr > MAX_ADDRESSES)


def _panels_first(sch: Schedule, block: Block, axes: TileAxes, target: CpuTarget) -> bool:
    """Whether the loop over panels is outside of that over row tiles.

    A panel then stays in L1 for all rows. Where all panels fit in L1, or no row reuses them, it
    goes inside: results are then stored sequentially.
    """
    far = axes.packed_b is not None and panels_bytes(block, axes) > target.l1
    return sch.choose(f"{block.name}.n_outer", far, lambda: (False, True))


def _batch_loops(sch: Schedule, block: Block, axes: TileAxes, band: LineBand | None) -> list[str]:
    loops = [loop_of(it) for it in axes.batch]
    return loops if band is None else [*loops[:-1], *band.split(sch, block.name)]


def _k_loops(sch: Schedule, block: Block, axes: TileAxes, b: PackedB) -> list[str]:
    """The loops over K; of windows, those that move them furthest are outside.

    A line of one channel is then in L1 for all taps that it is under.
    """
    sums, graph, load = reductions(block), block_graph(sch.func), axes.packed_b
    if load is None or not b.window:
        return [loop_of(it) for it in sums]
    distance = {
        it.name: abs(flat_stride(load, graph.buffers[load.buffer], it.name) or 0) for it in sums
    }
    return [loop_of(it) for it in sorted(sums, key=lambda it: -distance[it.name])]


def _window_steps(block: Block, sums: list[str]) -> list[str]:
    """Unroll the few taps in a line, each of which has an offset of its own."""
    extents = {loop_of(it): typical_extent(it.extent) for it in reductions(block)}
    return [sums.pop()] if len(sums) > 1 and extents[sums[-1]] <= MAX_UNROLLED_TAPS else []


def _unrolled_steps(sch: Schedule, block: Block, sums: list[str], tile: Microkernel) -> list[str]:
    """Unroll a vector's worth of steps of K, where A is loaded by vectors."""
    last = reductions(block)[-1].extent
    steps = tile.lanes if tile.lane_fma else 1
    steps = sch.choose(
        f"{block.name}.k_unroll",
        steps,
        lambda: [n * steps for n in STEPS if as_int(simplify(last % (n * steps))) == 0],
    )
    if steps == 1:
        return []
    sums[-1], inner = sch.split(sums[-1], [None, steps])
    return [inner]


def _can_lane_fma(
    block: Block, axes: TileAxes, graph: BlockGraph, lanes: int, target: CpuTarget
) -> bool:
    """Whether A can be loaded by vectors along K, for FMAs by lane."""
    innermost = reductions(block)[-1]
    if axes.packed_b is None or not target.has_lane_fma:
        return False
    if as_int(simplify(innermost.extent % lanes)) != 0:
        return False
    scalars = [r for r in reads_of(block) if r is not axes.packed_b]
    return all(is_unit(r, graph, innermost.name) for r in scalars)


def _problem(
    sch: Schedule, block: Block, axes: TileAxes, constants: frozenset[str], target: CpuTarget
) -> MicrokernelProblem:
    bits = accumulator_dtype(block).bits
    graph = block_graph(sch.func)
    can = _can_lane_fma(block, axes, graph, target.lanes(bits), target)
    by_lane = sch.choose(f"{block.name}.lane_fma", can, lambda: (False, True) if can else (False,))
    return MicrokernelProblem(
        m=_rows_at_once(axes, target.lanes(bits), target),
        n=typical_extent(axes.n.extent),
        k=steps_of(block),
        bits=bits,
        reuses_b=axes.packed_b is not None,
        row_period=0 if axes.m is None else _period(block, axes.m),
        lane_fma=by_lane,
        accumulators=accumulator_count(block, target.lanes(bits), by_lane)
        if axes.packed_b is not None
        else 1,
        dynamic_m=axes.m is not None
        and as_int(axes.m.extent) is None
        and _single_rows(block, axes)
        and not _whole_tiles(block, axes),
        # the load imbalance of symbolic sizes is not known
        batch=_count(axes.batch) if PARALLEL_WORK <= op_count(block) < UNKNOWN_WORK else 0,
        row_bytes=row_bytes(block, axes, graph),
        b_bytes=in_place_bytes(block, axes, graph, constants),
        constant_b=axes.packed_b is not None and axes.packed_b.buffer in constants,
        has_k_blocks=has_k_blocks(block, target.lanes(bits) if by_lane else 1),
        work_left=work_left(sch.func, block, axes.m, MAX_ROWS),
    )


def _count(axes: Sequence[Iter]) -> int:
    return prod(typical_extent(it.extent) for it in axes)


def _rows_at_once(axes: TileAxes, lanes: int, target: CpuTarget) -> int:
    """How many rows a tile may have.

    Rows that reuse no operand only fill the FMA pipelines, together with the vectors of columns. A
    symbolic number of rows (a batch, mostly) may be 1: a tile then has no more rows than the
    pipelines need.
    """
    if axes.m is None:
        return 1
    if axes.packed_b is not None or as_int(axes.m.extent) is not None:
        return typical_extent(axes.m.extent)
    vectors = -(-typical_extent(axes.n.extent) // lanes)
    return max(1, target.costs.fma_chains // vectors)


def _period(block: Block, row: Iter) -> int:
    """The least `n` for which an index uses `row % n`; 0 if none does."""
    found = [
        as_int(e.b) or 0
        for load in reads_of(block)
        for index in load.indices
        for e in subexpressions(index)
        if isinstance(e, Binary) and e.op == "mod" and e.a is Var(row.name)
    ]
    return min(found, default=0)


def _pad(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    tile: Microkernel,
    together: int = 1,
    in_place: bool = False,
) -> None:
    """Pad N to full tiles, and M to full groups of `together` tiles.

    Of a B that is read in place, zeros are past the end of a row.
    """
    if as_int(simplify(axes.n.extent % tile.nr)) != 0:
        sch.pad(block.name, axes.n.name, tile.nr, "zeros" if in_place else "")
    rows = tile.mr * max(1, together)
    if axes.m is not None and as_int(simplify(axes.m.extent % rows)) != 0:
        sch.pad(block.name, axes.m.name, rows)


def _least_edge(block: Block, axes: TileAxes, tile: Microkernel) -> int:
    """The fewest rows of the last tile: 1 for matrices, more for images, which are rarely small."""
    if axes.packed_b is None:
        return 0
    if _whole_tiles(block, axes):
        return tile.mr
    return 1 if _single_rows(block, axes) else -(-tile.mr // 2)


def _whole_tiles(block: Block, axes: TileAxes) -> bool:
    """Whether all tiles may be full: there are always enough rows for one, or none at all."""
    return (
        not allows_narrow_accumulation(block) and _single_rows(block, axes) and are_pixels(axes.m)
    )


def _single_rows(block: Block, axes: TileAxes) -> bool:
    """Whether this is a GEMM without batch axes: any number of rows may occur."""
    return axes.packed_b is not None and not axes.batch and len(reductions(block)) == 1
