"""Multi-level tiling on a GPU, SSSRRSRS: a contraction in blocks, virtual threads and threads.

    grid: (batch, S0 of rows, S0 of columns)
      thread (S2 of rows, of columns): C = 0                        registers
      for R0 of K, pipelined
        threads: left, right = tiles of the operands                shared, copied by all threads
        thread (S2): for R1: S1 and S3 unrolled: for R2: C[S4] += left * right
      thread (S2): result = epilogue(C)

A row of a tile is `((S0 * s1 + S1) * s2 + S2) * s3 + ...`: virtual threads (S1) are strips of the
tile, a part of each of which every thread has. What reads the result is computed on the finished
tile, else the result is written out there.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.arith.expr import Var
from tilewright.ir.loop.annotations import PIPELINE_STAGES
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import reads_of, spatial
from tilewright.schedule.analysis.gemm import match_gemm, operand_load, size_of
from tilewright.schedule.builtin.gpu.gemm.operand_copy import copy_of, copy_operand
from tilewright.schedule.builtin.gpu.gemm.simt import writes_vectors
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import VECTOR_ELEMENTS
from tilewright.target.gpu import GpuTarget
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch
from tilewright.tune.space.sketch.tiling import consumer_of

# Extents of the levels S1 (virtual threads), S2 (threads), S3 and S4, by default and else.
VIRTUAL, THREADS, OUTER, INNER = (1, (1, 2, 4)), (8, (4, 8, 16, 32)), (1, (1, 2)), (4, (1, 2, 4, 8))
# Extents of R1 and R2.
STEPS, PRODUCTS = (4, (1, 2, 4, 8)), (4, (1, 2, 4, 8))
STAGES = (2, (1, 2, 3, 4))
# Rows or columns that are worth a tile.
MIN_SIDE = 2


@dataclass(frozen=True)
class TileLevels:
    """The extents of S1, S2, S3 and S4 of an axis."""

    virtual: int
    threads: int
    outer: int
    inner: int

    @property
    def factors(self) -> list[int]:
        """All of them, outermost first."""
        return [self.virtual, self.threads, self.outer, self.inner]

    @property
    def side(self) -> int:
        """The rows, or columns, of a tile."""
        return prod(self.factors)

    @property
    def own(self) -> int:
        """Those of a thread."""
        return self.side // self.threads


def is_tiled_on_gpu(sketch: Sketch, name: str) -> bool:
    """Whether a block is a contraction with rows and columns to share what is read."""
    gemm = match_gemm(sketch.block(name))
    return gemm is not None and min(size_of(gemm.m), size_of(gemm.n)) >= MIN_SIDE


def choose_levels(sketch: Sketch, name: str, axis: str) -> TileLevels:
    """The levels of an axis of a GEMM."""
    levels = enumerate((VIRTUAL, THREADS, OUTER, INNER), 1)
    return TileLevels(*(_ask(sketch, f"{name}.{axis}.{n}", level) for n, level in levels))


def _ask(sketch: Sketch, name: str, choice: tuple[int, tuple[int, ...]]) -> int:
    default, options = choice
    return sketch.sch.choose(name, default, lambda: options)


def takes_over(block: Block, reader: Block) -> bool:
    """Whether a block reads the elements of a result in the order in which they are made."""
    plain = {it.name for it in spatial(reader)}
    buffer = block.writes[0].buffer
    same = [it.extent for it in spatial(block)] == [it.extent for it in spatial(reader)]
    return same and all(
        {i.name if isinstance(i, Var) else "" for i in load.indices} == plain
        for load in reads_of(reader)
        if load.buffer == buffer
    )


def epilogue_of(sketch: Sketch, name: str) -> str:
    """The block that is computed on finished tiles: what reads the result, or a copy of it."""
    block = sketch.block(name)
    reader = consumer_of(sketch, block)
    if reader is None or not takes_over(block, sketch.block(reader)):
        return str(sketch.sch.cache_write(name, "local"))
    sketch.pending.pop(reader)
    return reader


def _apply(sketch: Sketch, name: str) -> None:
    sketch.pending[name] = GPU_TILING.name


def tile_on_gpu(sketch: Sketch, name: str) -> None:
    """Lay a contraction out in the levels of the structure."""
    sch, target = sketch.sch, sketch.target
    assert isinstance(target, GpuTarget)
    rows, columns = (choose_levels(sketch, name, axis) for axis in "mn")
    steps, products = (
        _ask(sketch, f"{name}.k.{n}", extents) for n, extents in enumerate((STEPS, PRODUCTS), 1)
    )
    sketch.require(rows.threads * columns.threads <= target.threads_per_block, name)
    sketch.require(rows.threads * columns.threads >= target.warp_size, name)
    sketch.require(rows.own * columns.own <= target.registers_per_thread // 2, name)
    graph = sketch.graph
    gemm = match_gemm(graph.block(name))
    assert gemm is not None
    bytes_of_k = sum(
        side.side * operand_load(operand).dtype.bytes
        for side, operand in ((rows, gemm.a), (columns, gemm.b))
    )
    stages = _ask(sketch, f"{name}.stages", STAGES)
    shared = bytes_of_k * steps * products * stages
    sketch.require(shared <= target.max_shared_per_block, name)
    left = copy_of(graph.block(name), graph.buffers, "a", rows.side)
    right = copy_of(graph.block(name), graph.buffers, "b", columns.side)
    reader = epilogue_of(sketch, name)
    sch.to_gemm(name, rows.side, columns.side, steps * products, left.order, right.order)
    m0, m1, m2, m3, m4 = sch.split(f"{name}.m", [None, *rows.factors])
    n0, n1, n2, n3, n4 = sch.split(f"{name}.n", [None, *columns.factors])
    k0, k1, k2 = sch.split(f"{name}.k", [None, steps, products])
    sch.reorder(f"{name}.b", m0, n0, k0, m2, n2, k1, m1, n1, m3, n3, k2, m4, n4)
    for loop in (m2, n2):
        sch.bind(loop, "thread")
    for loop in (m1, n1, m3, n3, m4):
        sch.unroll(loop)
    for loop in (k1, k2):
        if sch.choose(f"{loop}.unroll", True, lambda: (False, True)):
            sch.unroll(loop)
    (sch.vectorize if columns.inner in (2, VECTOR_ELEMENTS) else sch.unroll)(n4)
    grid = str(sch.fuse(f"{name}.b", m0, n0))
    sch.bind(grid, "grid")
    threads = rows.threads * columns.threads
    copy_operand(sch, f"{name}.left", k0, left, threads)
    copy_operand(sch, f"{name}.right", k0, right, threads)
    sch.decompose_reduction(name, k0)
    sch.set_scope(sketch.block(name).writes[0].buffer, "register")
    _epilogue(sketch, reader, grid, rows, columns)
    if stages > 1:
        sch.annotate(k0, PIPELINE_STAGES.key, stages)


def _epilogue(
    sketch: Sketch, reader: str, grid: str, rows: TileLevels, columns: TileLevels
) -> None:
    """What is computed of a finished tile, each element by the thread that has it."""
    sch = sketch.sch
    vectors = columns.inner == VECTOR_ELEMENTS and writes_vectors(sch, reader)
    _, row, column = sch.reverse_compute_at(reader, grid)
    m1, m2, m3, m4 = sch.split(row, rows.factors)
    n1, n2, n3, n4 = sch.split(column, columns.factors)
    sch.reorder(m2, n2, m1, n1, m3, n3, m4, n4)
    for loop in (m2, n2):
        sch.bind(loop, "thread")
    for loop in (m1, n1, m3, n3, m4):
        sch.unroll(loop)
    (sch.vectorize if vectors else sch.unroll)(n4)


GPU_TILING = SketchRule("gpu-tiling", is_tiled_on_gpu, _apply)
