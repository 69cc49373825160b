"""Recurrences (RNN, LSTM, GRU): a serial loop over time steps, each of several nests.

Within a step, every GEMM is computed in register tiles, and the gate formulas that follow are its
epilogue:

    for t in serial(T)
      ...                                         the nests before the first GEMM
      parallel (column panel, row tile)
        C = 0                                     registers, all gates of some columns and rows
        for k: C[gate, row, columns] += state[row, k] * weights[k, gate, columns]
        state, outputs = formulas(C)

Constant weights are packed at compile time into panels that are read sequentially. Where weights
and state are bf16 and the target has dot products of pairs, a k-step takes two elements.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.expr import Load, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import BF16
from tilewright.ir.loop.nodes import Block, For, Func, Iter, Seq
from tilewright.ir.loop.walk import blocks, loops, loops_above
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    axis_names,
    block_graph,
    flat_stride,
    loop_of,
    reads_of,
    reductions,
    spatial,
    typical_extent,
    uses,
    value_of,
)
from tilewright.schedule.builtin.cpu.epilogue import fuse_epilogue, unroll_and_vectorize
from tilewright.schedule.builtin.cpu.gemm.bf16_dot import pair_instruction, vectorize_init
from tilewright.schedule.builtin.cpu.gemm.edge_tiles import mark_edges
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import SPARE_REGISTERS
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

MAX_ROWS = 4
# Vectors of columns in a tile.
WIDTHS = (8, 4, 2, 1)
# The overhead of a tile, as so many vectors of columns.
TILE_COST = 0.25
# Rows of a tile where the batch is symbolic and may be 1; more if the tile stays as wide.
SYMBOLIC_ROWS = 2


@dataclass(frozen=True)
class _Tile:
    """The axes of a GEMM, and the rows and columns of its register tile."""

    column: Iter
    row: Iter
    gate: Iter
    rows: int
    columns: int
    lanes: int


@dataclass(frozen=True)
class _Loops:
    """The loops over panels and row tiles, and over a tile's rows, vectors and lanes."""

    panel: str
    outer: str
    row: str
    vector: str
    lane: str


def steps_loop(func: Func) -> For | None:
    """The loop that holds several nests, a reduction among them; `None` if there is none."""
    for loop in loops(func.body):
        if isinstance(loop.body, Seq) and any(reductions(b) for b in blocks(loop)):
            return loop
    return None


def schedule_recurrence(
    sch: Schedule, steps: For, constants: frozenset[str], target: CpuTarget
) -> None:
    """Schedule every nest in the loop `steps`, which stays serial."""
    found = list(blocks(steps))
    starts = [n for n, b in enumerate(found) if reductions(b)]
    for block in found[: starts[0]]:
        _schedule_formula(sch, block, target)
    for first, end in zip(starts, [*starts[1:], len(found)], strict=True):
        _schedule_gemm(sch, found[first], found[first + 1 : end], constants, target)


def _schedule_formula(sch: Schedule, block: Block, target: CpuTarget) -> None:
    """A nest before any GEMM: its last axis vectorized."""
    lanes = target.lanes(value_of(block).dtype.bits)
    last = spatial(block)[-1]
    if typical_extent(last.extent) >= lanes:
        _, lane = sch.split(loop_of(last), [None, lanes])
        sch.vectorize(lane)


def _schedule_gemm(
    sch: Schedule, block: Block, after: list[Block], constants: frozenset[str], target: CpuTarget
) -> None:
    """A GEMM and its epilogue."""
    graph = block_graph(sch.func)
    tile = _tile(sch, block, target)
    instruction = _pair_instruction(block, tile, constants, target)
    _pack(sch, block, tile, constants, 2 if instruction else 1)
    for axis, multiple in ((tile.column, tile.columns), (tile.row, tile.rows)):
        if as_int(simplify(axis.extent % multiple)) != 0:
            sch.pad(block.name, axis.name, multiple)
    panel, column = sch.split(loop_of(tile.column), [None, tile.columns])
    vector, lane = sch.split(column, [None, tile.lanes])
    outer, row = sch.split(loop_of(tile.row), [None, tile.rows])
    if instruction:
        loops = _Loops(panel, outer, row, vector, lane)
        _dot_pairs(sch, block, after, tile, loops, instruction)
        _finish(sch, block, panel, outer, target)
        return
    summed = [loop_of(it) for it in reductions(block)]
    steps = _steps_by_lane(sch, block, graph, tile, target)
    inner = [*steps[1:], loop_of(tile.gate), row, vector]
    sums = [*summed[:-1], steps[0]]
    sch.reorder(panel, outer, *sums, *inner, lane)
    written = [fuse_epilogue(sch, b.name, outer, tile.lanes)[-1] for b in after]
    mark_edges(sch, block.name, tile.row, tile.rows, 1, [row, *written])
    unroll_and_vectorize(sch, *inner, lane)
    sch.decompose_reduction(block.name, sums[0])
    _finish(sch, block, panel, outer, target)


def _finish(sch: Schedule, block: Block, panel: str, outer: str, target: CpuTarget) -> None:
    sch.set_scope(block.writes[0].buffer, "register")
    if is_parallel(sch, block.name, _products(block), target.costs.recurrence_grain):
        fuse_parallel(sch, block.name, [panel, outer])


def _pair_instruction(
    block: Block, tile: _Tile, constants: frozenset[str], target: CpuTarget
) -> str | None:
    """The dot product of bf16 pairs, where both operands are bf16 and weights can be packed."""
    reads = reads_of(block)
    packed = all(r.buffer in constants for r in reads if uses(r, tile.column.name))
    whole = as_int(simplify(reductions(block)[-1].extent % 2)) == 0
    narrow = len(reductions(block)) == 1 and all(r.dtype == BF16 for r in reads)
    return pair_instruction(target) if narrow and packed and whole else None


def _dot_pairs(
    sch: Schedule, block: Block, after: list[Block], tile: _Tile, loops: _Loops, instruction: str
) -> None:
    """A GEMM by dot products of bf16 pairs, and its epilogue."""
    pairs, pair = sch.split(loop_of(reductions(block)[0]), [None, 2])
    written = [loop_of(tile.gate), loops.row, loops.vector]
    sch.reorder(loops.panel, loops.outer, pairs, *written, loops.lane, pair)
    for formula in after:
        fuse_epilogue(sch, formula.name, loops.outer, tile.lanes)
    sch.decompose_reduction(block.name, pairs)
    for loop in written:
        sch.unroll(loop)
    around = [loop.name for loop in loops_above(sch.func, block.name)]
    vectorize_init(sch, block.name, around[: around.index(pairs)])
    sch.tensorize(sch.blockize(loops.lane), instruction)


def _tile(sch: Schedule, block: Block, target: CpuTarget) -> _Tile:
    """Rows, which reuse loaded weights, then as many columns as registers allow."""
    row, gate, column = spatial(block)[-3:]
    lanes = target.lanes(value_of(block).dtype.bits)
    gates = typical_extent(gate.extent)
    free = target.vector_registers - SPARE_REGISTERS - 2
    wanted = -(-typical_extent(column.extent) // lanes)

    def fitting(rows: int) -> list[int]:
        return [n for n in WIDTHS if n * gates * rows <= free] or [1]

    def cost(vectors: int) -> float:
        return -(-wanted // vectors) * (vectors + TILE_COST)

    def width(rows: int) -> int:
        return min(fitting(rows), key=cost)

    most = max(1, min(MAX_ROWS, free // gates))
    few = min(SYMBOLIC_ROWS, most)
    alike = max(n for n in range(few, most + 1) if width(n) == width(few))
    batch = as_int(row.extent) or alike
    rows = -(-batch // -(-batch // most))
    highest = min(most, as_int(row.extent) or most)
    rows = sch.choose(f"{block.name}.mr", rows, lambda: range(1, highest + 1))
    vectors = sch.choose(
        f"{block.name}.nr_vectors", width(rows), lambda: sorted(fitting(rows)), cost
    )
    return _Tile(column, row, gate, rows, vectors * lanes, lanes)


def _products(block: Block) -> int:
    total = 1
    for it in block.iters[1:]:
        total *= typical_extent(it.extent)
    return total


def _pack(
    sch: Schedule, block: Block, tile: _Tile, constants: frozenset[str], together: int
) -> None:
    """Pack constant weights in panels: what a tile reads in one k-step is contiguous.

    A k-step takes so many elements of K `together`, which are innermost.
    """
    for load in reads_of(block):
        position = {i.name: d for d, i in enumerate(load.indices) if isinstance(i, Var)}
        if load.buffer not in constants or not uses(load, tile.column.name):
            continue
        column = position[tile.column.name]
        outer, inner = (column, tile.columns, 0), (column, tile.columns, 1)
        gate = (position[tile.gate.name], 0, 0)
        summed = [position[axis] for axis in axis_names(reductions(block))]
        if together == 1:
            parts = [outer, *((d, 0, 0) for d in summed), gate, inner]
        else:
            parts = [outer, (summed[0], together, 0), gate, inner, (summed[0], together, 1)]
        sch.transform_layout(load.buffer, parts)


def _steps_by_lane(
    sch: Schedule, block: Block, graph: BlockGraph, tile: _Tile, target: CpuTarget
) -> list[str]:
    """The loop over K; split by a vector where the state can be loaded by vectors."""
    last = reductions(block)[-1]
    whole = as_int(simplify(last.extent % tile.lanes)) == 0
    states = [r for r in reads_of(block) if not uses(r, tile.column.name)]
    if target.has_lane_fma and whole and all(_along(r, graph, last) for r in states):
        return list(sch.split(loop_of(last), [None, tile.lanes]))
    return [loop_of(last)]


def _along(load: Load, graph: BlockGraph, axis: Iter) -> bool:
    return flat_stride(load, graph.buffers[load.buffer], axis.name) == 1
