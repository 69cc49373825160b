"""GEMM on tensor cores: f16, bf16, 8-bit integers, and f32 rounded to TF32.

    grid: (batch, row tile, column tile)
      warp (y, x): C = 0                                 fragments
      for k-tiles, software-pipelined
        threads: left, right = tiles of the operands     shared, 16 bytes at a time
        warp (y, x): C += left * right                   32 bytes of K at a time
      thread (y, x, lane): result = epilogue(C)

A tile has the same layout in shared memory as its operand in global memory, so that it is copied in
vectors of 16 bytes; the instructions read K-major and MN-major operands.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Load, as_int
from tilewright.arith.simplify import prove
from tilewright.core.dtypes import F32
from tilewright.ir.loop.annotations import (
    MIN_BLOCKS_PER_SM,
    PERSISTENT,
    PINGPONG,
    PIPELINE_STAGES,
    STREAM_K,
    WARP_SPECIALIZED,
)
from tilewright.ir.loop.nodes import Buffer, Iter, Store
from tilewright.ir.loop.thread_mapping import FRAGMENT
from tilewright.ir.loop.walk import loops, loops_above
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_index,
    in_groups,
    reads_of,
    spatial,
    uses,
)
from tilewright.schedule.analysis.gemm import is_k_major, match_gemm, operand_load
from tilewright.schedule.builtin.gpu.gemm.select_tensor_core_tile import TensorCoreTiles
from tilewright.schedule.builtin.gpu.gemm.split_k import schedule_split_k
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    Mainloop,
    TensorCoreTile,
    TileScheduler,
)
from tilewright.schedule.builtin.gpu.gemm.tma_copy import are_tma_loadable, tma_load
from tilewright.schedule.builtin.gpu.smem_copy import aligned_elements, copy_by_threads
from tilewright.schedule.intrin.nvidia import fragment_shuffle
from tilewright.schedule.intrin.nvidia.mma import MMA_M, VECTOR_ELEMENTS
from tilewright.schedule.intrin.nvidia.mma_types import kind_of
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# The most rows of tiles that are rasterized together; a search tries twice as many.
GROUP_M = 8
# The most pipeline stages that a search considers.
MAX_STAGES = 8
# Registers for what the epilogue of float accumulators reads before its first store.
PREFETCH_REGISTERS = 64
# Registers of a thread besides its accumulators and what it has prefetched.
WORKING_REGISTERS = 32


def schedule_tensor_core(
    sch: Schedule, name: str, found: TensorCoreTiles, target: GpuTarget
) -> None:
    """Schedule a GEMM and its epilogue."""
    tile = _choose_stages(sch, name, _choose_tile(sch, name, found), found)
    tiles = partial(schedule_tiles, sch, tile, target)
    schedule_split_k(sch, name, tile.split_k, tile.block_k, tiles, target)


def _choose_tile(sch: Schedule, name: str, found: TensorCoreTiles) -> TensorCoreTile:
    """The default tile, or another; a warp-specialized one only where it is possible."""
    default = found.default
    while default.fallback is not None and not _can_warp_specialize(sch, name, default):
        default = default.fallback

    def possible() -> dict[str, TensorCoreTile]:
        fitting = (
            t
            for t in found.tiles
            if t.mainloop is not Mainloop.WARP_SPECIALIZED or _can_warp_specialize(sch, name, t)
        )
        return {t.spelling: t for t in fitting}

    def us(spelling: str) -> float:
        return found.us(default if spelling == default.spelling else possible()[spelling])

    taken = sch.choose(f"{name}.tile", default.spelling, possible, us)
    return default if taken == default.spelling else possible()[taken]


def _choose_stages(
    sch: Schedule, name: str, tile: TensorCoreTile, found: TensorCoreTiles
) -> TensorCoreTile:
    """The tile with as many pipeline stages as it has by default, or as fit in shared memory."""
    limit = found.target.max_shared_per_block // (tile.shared // tile.stages)
    most = max(tile.stages, min(limit, MAX_STAGES))
    stages = sch.choose(f"{name}.stages", tile.stages, lambda: range(2, most + 1))
    return replace(tile, stages=stages)


def _can_warp_specialize(sch: Schedule, name: str, tile: TensorCoreTile) -> bool:
    """Whether TMA can load all tiles of both operands, and stores are vectors.

    Stores of pairs, in rows far apart, would stall the few consumer warps.
    """
    reader = block_graph(sch.func).blocks[-1].name
    if _writes_sectors(sch, reader) and not _writes_vectors(sch, reader):
        return False
    trial = Schedule(sch.func)
    return are_tma_loadable(trial, tile, name, _to_gemm(trial, tile, name))


def _to_gemm(sch: Schedule, tile: TensorCoreTile, name: str) -> tuple[bool, bool]:
    """Bring a block into the form of a GEMM; whether its operands are K-major."""
    graph = block_graph(sch.func)
    block = graph.block(name)
    left, right = (is_k_major(block, graph.buffers, "a"), is_k_major(block, graph.buffers, "b"))
    if tile.swap_ab:
        left, right = right, left
    orders = ("mk" if left else "km", "nk" if right else "kn")
    sch.to_gemm(name, *tile.sides, *orders, int(tile.swap_ab))
    return left, right


def schedule_tiles(
    sch: Schedule, tile: TensorCoreTile, target: GpuTarget, name: str, reader: str
) -> None:
    """Schedule a GEMM, and the block of its epilogue, tile by tile."""
    gemm = match_gemm(block_graph(sch.func).block(name), gemv=True)
    assert gemm is not None
    kind = kind_of(*(str(operand_load(x).dtype) for x in (gemm.a, gemm.b)))
    left, right = _to_gemm(sch, tile, name)
    high, wide = tile.warp
    m0, *again, y, m1 = sch.split(f"{name}.m", [None, *tile.m_split, high])
    n0, x, n1 = sch.split(f"{name}.n", [None, tile.warps_n, wide])
    k0, k1, k2 = sch.split(
        f"{name}.k", [None, tile.block_k // tile.instruction_k, tile.instruction_k]
    )
    sch.reorder(f"{name}.b", m0, n0, k0, y, x, k1, *again, m1, n1, k2)
    grid = _rasterize(sch, f"{name}.b", m0, n0)
    sch.bind(grid, "grid")
    for loop in (y, x):
        sch.bind(loop, "warp")
    for loop in (k1, *again):
        sch.unroll(loop)
    able = tile.wgmma and target.has("tma") and are_tma_loadable(sch, tile, name, (left, right))
    tma = able and _choose_tma(sch, name, tile)
    for copied in (f"{name}.left", f"{name}.right"):
        if tma:
            tma_load(sch, copied, k0)
        else:
            _copy_tile(sch, copied, k0, tile)
    init = sch.decompose_reduction(name, k0)
    sch.set_scope(block_graph(sch.func).block(name).writes[0].buffer, "fragment")
    zero, step = tile.names(kind, left, right)
    sch.tensorize(sch.blockize(loops_above(sch.func, init)[-2].name), zero)
    sch.tensorize(sch.blockize(m1), step)
    _epilogue(sch, reader, grid, tile)
    for buffer in _prefetch_epilogue(
        block_graph(sch.func), reader, tile, _free_registers(tile, target)
    ):
        sch.reindex_cache_read(reader, buffer, "register")
    if tile.mainloop is Mainloop.WARP_SPECIALIZED:
        blocks = STREAM_K if tile.scheduler is TileScheduler.STREAM_K else PERSISTENT
        sch.annotate(grid, blocks.key, target.sm_count)
        sch.annotate(grid, PINGPONG.key, tile.consumer_groups)
        sch.annotate(grid, MIN_BLOCKS_PER_SM.key, 1)
        sch.annotate(k0, PIPELINE_STAGES.key, tile.stages)
        sch.annotate(k0, WARP_SPECIALIZED.key, 1)
    else:
        sch.annotate(k0, PIPELINE_STAGES.key, _stages(sch, k0, tile))


def _choose_tma(sch: Schedule, name: str, tile: TensorCoreTile) -> bool:
    """Whether TMA copies tiles, not threads: it must where it rounds, or where warps specialize."""
    default = tile.mainloop is not Mainloop.CP_ASYNC
    if tile.mainloop is Mainloop.WARP_SPECIALIZED or tile.operand_bytes == F32.bytes:
        return default
    return sch.choose(f"{name}.tma", default, lambda: (False, True))


def _stages(sch: Schedule, step: str, tile: TensorCoreTile) -> int:
    """The pipeline stages, no more than there are k-tiles.

    A k-tile whose wgmma is in flight keeps its stage for one more.
    """
    (steps,) = (as_int(loop.extent) for loop in loops(sch.func.body) if loop.name == step)
    return min(tile.stages, (steps or tile.stages) + 1 + tile.wgmma)


def _rasterize(sch: Schedule, batch: str, rows: str, columns: str) -> str:
    """One loop over all tiles, in groups of several rows, each column by column.

    Tiles that run at the same time then share both operands: less L2 traffic.
    """
    (count,) = (as_int(loop.extent) for loop in loops(sch.func.body) if loop.name == rows)
    groups_of = [n for n in range(1, 2 * GROUP_M + 1) if (count or 1) % n == 0]
    group = sch.choose(
        f"{rows}.group", max(n for n in groups_of if n <= GROUP_M), lambda: groups_of
    )
    if group == 1:
        return str(sch.fuse(batch, rows, columns))
    groups, row = sch.split(rows, [None, group])
    sch.reorder(batch, groups, columns, row)
    return str(sch.fuse(batch, groups, columns, row))


def _copy_tile(sch: Schedule, name: str, step: str, tile: TensorCoreTile) -> None:
    """Copy a tile of an operand to shared memory by all threads."""
    axes = sch.compute_at(name, step)
    graph = block_graph(sch.func)
    sch.set_scope(graph.block(name).writes[0].buffer, "shared")
    vector = aligned_elements(graph.block(name), graph.buffers, tile.vector_elements)
    copy_by_threads(sch, axes, tile.threads, vector)


def _epilogue(sch: Schedule, name: str, grid: str, tile: TensorCoreTile) -> None:
    """The epilogue, on the accumulators of each thread."""
    high, wide = tile.warp
    side = _writes_side_by_side(sch, name) and wide % fragment_shuffle.SHUFFLE_COLUMNS == 0
    if side and not _writes_sectors(sch, name):
        _shuffle_accumulators(sch, name, grid, tile, fragment_shuffle.row_transpose_name)
        _epilogue_by_rows(sch, name, grid, tile)
        return
    vectors = side and _writes_vectors(sch, name)
    neighbours = VECTOR_ELEMENTS if vectors else 2
    if vectors:
        _shuffle_accumulators(sch, name, grid, tile, fragment_shuffle.quad_transpose_name)
    _, rows, columns = sch.reverse_compute_at(name, grid)
    *again, y, m, eighth, row = sch.split(rows, [*tile.m_split, high // MMA_M, 2, MMA_M // 2])
    x, n, column, vector = sch.split(
        columns, [tile.warps_n, wide // (4 * neighbours), 4, neighbours]
    )
    sch.reorder(y, x, row, column, *again, m, eighth, n, vector)
    for loop in (y, x, row, column):
        sch.bind(loop, "thread")
    for loop in (*again, m, eighth, n):
        sch.unroll(loop)
    if tile.swap_ab:  # a row of accumulators is a column of the result
        sch.unroll(vector)
    else:
        sch.vectorize(vector)


def _epilogue_by_rows(sch: Schedule, name: str, grid: str, tile: TensorCoreTile) -> None:
    """The epilogue after a row transpose: a warp has 32 neighbours of a row at a time."""
    _, rows, columns = sch.reverse_compute_at(name, grid)
    high, wide = tile.warp
    *again, y, row = sch.split(rows, [*tile.m_split, high])
    x, n, eighth, pair, one = sch.split(
        columns, [tile.warps_n, wide // fragment_shuffle.SHUFFLE_COLUMNS, 4, 4, 2]
    )
    sch.reorder(y, x, eighth, one, pair, *again, n, row)
    for loop in (y, x, eighth, one, pair):
        sch.bind(loop, "thread")
    for loop in (*again, n, row):
        sch.unroll(loop)


def _prefetch_epilogue(
    graph: BlockGraph, reader: str, tile: TensorCoreTile, free: int
) -> list[str]:
    """Arrays that the epilogue reads before its first store: a load behind a store waits for it.

    With float accumulators these are arrays of the size of the result, and in persistent kernels,
    which have few warps to hide latency, also those with a value for each column. With integer
    accumulators, whose epilogue reads zero points and scales, all that fits in `free` registers.
    """
    block = graph.block(reader)
    row, column = (it.name for it in spatial(block)[-2:])
    scopes = {r.buffer: graph.buffers[r.buffer] for r in block.reads}
    persistent = tile.mainloop is Mainloop.WARP_SPECIALIZED
    integers = any(b.scope == FRAGMENT and b.dtype.is_integer for b in scopes.values())
    given = {x for x in reads_of(block) if scopes[x.buffer].scope == "global"}
    full = {x.buffer for x in given if uses(x, row) and uses(x, column)}
    more = {x.buffer for x in given if integers or (persistent and uses(x, column))} - full
    words, found = free if integers else PREFETCH_REGISTERS, []
    for buffer in (*sorted(full), *sorted(more)):
        (load, *others) = (x for x in given if x.buffer == buffer)
        own = _own_elements(tile, uses(load, row), uses(load, column)) * load.dtype.bits // 32
        if own <= words and not others:
            words -= own
            found.append(buffer)
    return found


def _free_registers(tile: TensorCoreTile, target: GpuTarget) -> int:
    """The registers of a thread that its accumulators leave."""
    share = target.registers_per_sm // (tile.threads * tile.blocks_per_sm)
    accumulators = tile.block_m * tile.block_n // tile.threads
    return min(share, target.registers_per_thread) - accumulators - WORKING_REGISTERS


def _own_elements(tile: TensorCoreTile, by_row: bool, by_column: bool) -> int:
    """The elements of an array that a thread reads: one for each of its rows, columns or both."""
    high, wide = tile.warp
    rows = high // 8 * tile.m_repeats
    return (rows if by_row else 1) * (wide // 4 if by_column else 1)


def _writes_side_by_side(sch: Schedule, name: str) -> bool:
    """Whether eight columns of the GEMM are contiguous in what a block writes.

    N may be several axes in one, of which the last is a multiple of eight.
    """
    place, to, column = _written(sch, name)
    flat, extents = in_groups(flat_index(place, to), column, VECTOR_ELEMENTS)
    return stride_of(flat, list(extents)[-1]) == 1


def _writes_sectors(sch: Schedule, name: str) -> bool:
    """Whether groups of eight columns are aligned in what a block writes."""
    return prove((_written(sch, name)[2].extent % VECTOR_ELEMENTS).eq(0))


def _writes_vectors(sch: Schedule, name: str) -> bool:
    """Whether eight columns are a 16-byte vector: pairs of wider elements fill sectors anyway."""
    return _written(sch, name)[1].dtype.bytes * VECTOR_ELEMENTS <= VECTOR_BYTES


def _written(sch: Schedule, name: str) -> tuple[Load, Buffer, Iter]:
    """Where a block writes, and the N axis of the GEMM."""
    graph = block_graph(sch.func)
    block = graph.block(name)
    assert isinstance(block.body, Store)
    to = graph.buffers[block.body.buffer]
    return Load(to.name, block.body.indices, to.dtype), to, block.iters[-1]


def _shuffle_accumulators(
    sch: Schedule, name: str, grid: str, tile: TensorCoreTile, way: Callable[[int, int, str], str]
) -> None:
    """Let a block read accumulators after a shuffle between lanes."""
    graph = block_graph(sch.func)
    (total,) = (
        r.buffer for r in graph.block(name).reads if graph.buffers[r.buffer].scope == FRAGMENT
    )
    copy = sch.cache_read(name, total, FRAGMENT)
    _, rows, columns = sch.reverse_compute_at(copy, grid)
    high, wide = tile.warp
    *again, y, m = sch.split(rows, [*tile.m_split, high])
    x, n = sch.split(columns, [tile.warps_n, wide])
    sch.reorder(y, x, *again, m, n)
    for loop in (y, x):
        sch.bind(loop, "warp")
    for loop in again:
        sch.unroll(loop)
    sch.tensorize(sch.blockize(m), way(high, wide, str(graph.buffers[total].dtype)))
