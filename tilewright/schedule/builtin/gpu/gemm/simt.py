"""GEMM on CUDA cores, implicit GEMM included: tiles in shared memory, smaller ones in registers.

    grid: (batch, row tile, column tile)
      thread (y, x): C = 0                               registers
      for k-tiles, software-pipelined
        threads: left, right = tiles of the operands     shared
        thread (y, x): C[8, 8] += left[8] * right[8]
      thread (y, x): result = epilogue(C)

A thread has vectors of four rows and columns, neighbouring threads neighbouring ones: their reads
of shared memory have no bank conflicts. What is K-major, in aligned rows, stays so; then threads
have single rows or columns, and read vectors along K. `transpose_operands.py` transposes operands
before.
"""

from __future__ import annotations

from functools import partial

from tilewright.arith.expr import Load
from tilewright.core.dtypes import F32
from tilewright.ir.loop.annotations import MIN_BLOCKS_PER_SM, PIPELINE_STAGES
from tilewright.ir.loop.nodes import Buffer, Iter, Store
from tilewright.schedule.analysis.blocks import (
    block_graph,
    flat_stride,
    typical_extent,
)
from tilewright.schedule.analysis.gemm import match_gemm
from tilewright.schedule.builtin.gpu.gemm.operand_copy import (
    copy_of,
    copy_operand,
    is_vectorizable,
)
from tilewright.schedule.builtin.gpu.gemm.select_simt_tile import SimtTiles
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import VECTOR_ELEMENTS, SimtTile
from tilewright.schedule.builtin.gpu.gemm.split_k import schedule_split_k
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.sm_90a import SIMT
from tilewright.target.gpu import GpuTarget

# The most pipeline stages that a search considers.
MAX_STAGES = 6


def schedule_simt(sch: Schedule, name: str, found: SimtTiles, target: GpuTarget) -> None:
    """Schedule a GEMM and its epilogue."""
    known = {t.spelling: t for t in (*found.tiles, found.default)}
    taken = sch.choose(
        f"{name}.tile",
        found.default.spelling,
        lambda: known,
        lambda spelling: found.seconds(known[spelling]),
    )
    tile = known[taken]
    stage = (tile.block_m + tile.block_n) * tile.block_k * F32.bytes
    most = min(target.max_pipeline_stages or MAX_STAGES, target.max_shared_per_block // stage)
    fitting = max(tile.stages, most)
    stages = sch.choose(f"{name}.stages", tile.stages, lambda: range(2, fitting + 1))
    step = found.shape.step_of_channels(tile)
    if step > 1:
        gemm = match_gemm(block_graph(sch.func).block(name))
        assert gemm is not None
        sch.pad_reduction(name, gemm.k[-1].name, step)
    tiles = partial(_schedule_tiles, sch, tile, stages, target)
    schedule_split_k(sch, name, tile.split_k, tile.block_k, tiles, target)


def _schedule_tiles(
    sch: Schedule, tile: SimtTile, stages: int, target: GpuTarget, name: str, reader: str
) -> None:
    """Schedule a GEMM, and the block of its epilogue, tile by tile."""
    graph = block_graph(sch.func)
    left = copy_of(graph.block(name), graph.buffers, "a", tile.block_m)
    right = copy_of(graph.block(name), graph.buffers, "b", tile.block_n)
    sch.to_gemm(name, *tile.sides, left.order, right.order)
    rows = tile.m_split(VECTOR_ELEMENTS if left.order == "km" else 1)
    columns = tile.n_split(VECTOR_ELEMENTS if right.order == "kn" else 1)
    m0, m1, y0, y1, m2 = sch.split(f"{name}.m", [None, *rows])
    n0, n1, x0, x1, n2 = sch.split(f"{name}.n", [None, *columns])
    chains = [tile.chains] if tile.chains > 1 else []
    k0, *k1 = sch.split(f"{name}.k", [None, tile.block_k // tile.chains, *chains])
    sch.reorder(f"{name}.b", m0, n0, k0, y0, x0, y1, x1, *k1, m1, m2, n1, n2)
    summed = sch.rfactor(name, k1[-1]) if chains else name
    for loop in (y0, x0, y1, x1):
        sch.bind(loop, "thread")
    for loop in (*k1, m1, m2, n1):
        sch.unroll(loop)
    _contiguous(sch, n2, columns)
    grid = sch.fuse(f"{name}.b", m0, n0)
    sch.bind(grid, "grid")
    lean = (left.order, right.order) == ("km", "kn") and left.vectors and right.vectors
    # Scalar copies, and K-major operands, take more registers.
    resident = tile.blocks_per_sm if lean else max(1, tile.blocks_per_sm - 1)
    depth = VECTOR_ELEMENTS if "k" in (left.order[1], right.order[1]) else 1
    resident = min(resident, tile.resident(target, depth))
    least = sch.choose(f"{name}.min_blocks", resident, lambda: range(1, tile.blocks_per_sm + 1))
    sch.annotate(grid, MIN_BLOCKS_PER_SM.key, least)
    copy_operand(sch, f"{name}.left", k0, left, tile.threads)
    copy_operand(sch, f"{name}.right", k0, right, tile.threads)
    sch.decompose_reduction(summed, k0)
    sch.set_scope(block_graph(sch.func).block(summed).writes[0].buffer, "register")
    if chains:
        _add_chains(sch, name, grid, rows, columns)
    # Of single columns, neighbouring threads have neighbours: whole sectors but for the first.
    single = right.order == "nk"
    through_shared = not single and _needs_shared_epilogue(sch, reader)
    write = _epilogue_through_shared if through_shared else _epilogue
    write(sch, reader, grid, rows, columns)
    sch.annotate(k0, PIPELINE_STAGES.key, stages)


def _add_chains(
    sch: Schedule, name: str, grid: str, row_parts: list[int], column_parts: list[int]
) -> None:
    """Each thread adds up the chains of its elements."""
    sch.set_scope(block_graph(sch.func).block(name).writes[0].buffer, "register")
    _, rows, columns, chain = sch.reverse_compute_at(name, grid)
    m1, y0, y1, m2 = sch.split(rows, row_parts)
    n1, x0, x1, n2 = sch.split(columns, column_parts)
    sch.reorder(y0, x0, y1, x1, m1, m2, n1, n2, chain)
    for loop in (y0, x0, y1, x1):
        sch.bind(loop, "thread")
    sch.decompose_reduction(name, chain)
    for loop in (m1, m2, n1, n2, chain):
        sch.unroll(loop)


def _epilogue(
    sch: Schedule, name: str, grid: str, row_parts: list[int], column_parts: list[int]
) -> None:
    """The epilogue, on the accumulators of each thread."""
    _, rows, columns = sch.reverse_compute_at(name, grid)
    m1, y0, y1, m2 = sch.split(rows, row_parts)
    n1, x0, x1, n2 = sch.split(columns, column_parts)
    sch.reorder(y0, x0, y1, x1, m1, m2, n1, n2)
    for loop in (y0, x0, y1, x1):
        sch.bind(loop, "thread")
    for loop in (m1, m2, n1):
        sch.unroll(loop)
    if writes_vectors(sch, name):
        _contiguous(sch, n2, column_parts)
    else:
        sch.unroll(n2)


def _epilogue_through_shared(
    sch: Schedule, name: str, grid: str, row_parts: list[int], column_parts: list[int]
) -> None:
    """The epilogue where rows of the result are not aligned to vectors: coalesced stores.

    The contiguous words of a thread would be partial sectors, each written several times. So
    accumulators go through shared memory, some rows of the tile at a time.
    """
    graph = block_graph(sch.func)
    (total,) = (
        r.buffer for r in graph.block(name).reads if graph.buffers[r.buffer].scope == "register"
    )
    copy = str(sch.cache_read(name, total, "shared"))
    _, rows, columns = sch.reverse_compute_at(copy, grid)
    part, y0, y1, m2 = sch.split(rows, row_parts)
    n1, x0, x1, n2 = sch.split(columns, column_parts)
    sch.reorder(part, y0, x0, y1, x1, m2, n1, n2)
    for loop in (y0, x0, y1, x1):
        sch.bind(loop, "thread")
    for loop in (m2, n1):
        sch.unroll(loop)
    sch.vectorize(n2)
    threads = row_parts[1] * row_parts[2] * column_parts[1] * column_parts[2]
    own = sch.fuse(*sch.reverse_compute_at(name, part))
    step, thread = sch.split(own, [None, threads])
    sch.reorder(thread, step)
    sch.bind(thread, "thread")
    for loop in (step, part):
        sch.unroll(loop)


def _contiguous(sch: Schedule, loop: str, column_parts: list[int]) -> None:
    """The loop over the neighbouring columns of a thread, of which there may be only one."""
    (sch.vectorize if column_parts[-1] > 1 else sch.unroll)(loop)


def _needs_shared_epilogue(sch: Schedule, name: str) -> bool:
    """Whether stores are contiguous along N but not aligned to vectors.

    With few columns, the barriers would cost more than coalesced stores save.
    """
    place, to, column = _written(sch, name)
    many = typical_extent(column.extent) >= SIMT.shared_epilogue_min_n
    return many and flat_stride(place, to, column.name) == 1 and not writes_vectors(sch, name)


def writes_vectors(sch: Schedule, name: str) -> bool:
    """Whether a block stores aligned vectors along N."""
    place, to, column = _written(sch, name)
    return is_vectorizable(place, to, column, column.extent)


def _written(sch: Schedule, name: str) -> tuple[Load, Buffer, Iter]:
    """Where a block writes, in which buffer, and the N axis."""
    graph = block_graph(sch.func)
    block = graph.block(name)
    assert isinstance(block.body, Store)
    to = graph.buffers[block.body.buffer]
    return Load(to.name, block.body.indices, to.dtype), to, block.iters[-1]
