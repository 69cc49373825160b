"""Nests with no reduction that read along another axis than they write: transpositions.

    for rows in blocks                             parallel
      for columns in strips                        parallel
        for rows of the block in vectors           reads run on, line after line
          for columns of the strip in lines
            for vectors of the line, rows          written out: squares, transposed in registers
              out[row, vector] = in[vector, row]

A square of vectors is loaded by rows and transposed by shuffles (`finalize/cpu/transpose_loads`).
A strip is one cache line of what is written, and takes as many lines of what is read, few enough
for the nearest cache whatever the distance between them. More rows than the prefetcher follows
streams would each wait for memory: then a strip is many lines, written a few rows at a time. Where
sizes are not known all loops of a square get exact remainders (`finalize/cpu/remainder_loops`), so
short axes cost little.
"""

from __future__ import annotations

from typing import NamedTuple

from tilewright.arith.expr import Select, as_int
from tilewright.arith.walk import loads, subexpressions
from tilewright.core.dtypes import BOOL
from tilewright.ir.loop.annotations import PARTITION
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_stride,
    loop_of,
    reads_of,
    spatial,
    typical_extent,
    value_of,
)
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import divisors, largest_divisor
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import LINE_BYTES, CpuTarget

# Rows of the output that a block of loops writes: each is in a page of its own.
MAX_ROWS = 128
# Columns, and rows, of which squares are made; of fewer, elements are moved one by one.
MIN_COLUMNS = 4
MIN_ROWS = 4
# Vectors of a row that are written together.
LINES = (1, 2, 4)
# Lines of a row that are written in a run where there are many rows: half a page.
RUN = 32
# Strips that a block of rows is at least cut into: threads share them.
MIN_STRIPS = 8


def crossing_axis(
    block: Block, graph: BlockGraph, target: CpuTarget, least_rows: int | None = None
) -> Iter | None:
    """The axis along which an input is contiguous and the output is not, if there is one.

    It has at least so many rows; without a number, as many as a square.
    """
    *outer, column = spatial(block)
    lanes, most = _side(block, target), _longest_side(block, target)
    # Conditions are not transposed in registers: a short line of them is not worth a vector.
    least = most if value_of(block).dtype == BOOL else min(most, MIN_COLUMNS)
    if lanes < 2 or typical_extent(column.extent) < least or _chooses(block):
        return None
    for it in reversed(outer):
        crossing = any(
            flat_stride(r, graph.buffers[r.buffer], it.name) == 1
            and flat_stride(r, graph.buffers[r.buffer], column.name) not in (0, 1)
            for r in reads_of(block)
        )
        if crossing and typical_extent(it.extent) >= min(lanes, least_rows or lanes):
            return it
    return None


def _side(block: Block, target: CpuTarget) -> int:
    """The elements of a square's row; a short line is one of a square of its own."""
    side = _longest_side(block, target)
    line = as_int(spatial(block)[-1].extent) or side
    while side // 2 >= line:
        side //= 2
    return side


def _longest_side(block: Block, target: CpuTarget) -> int:
    """A vector of elements, if the registers hold two such squares.

    Larger ones would be spilled, and take LLVM a minute.
    """
    return min(target.lanes(value_of(block).dtype.bits), target.vector_registers // 2)


def _chooses(block: Block) -> bool:
    """Whether an element's position, not its value, decides what is computed."""
    choices = (e.cond for e in subexpressions(value_of(block)) if isinstance(e, Select))
    return any(not any(loads(condition)) for condition in choices)


def schedule_transposed(sch: Schedule, block: Block, rows: Iter, target: CpuTarget) -> list[str]:
    """Schedule the nest in squares; the loops that may run in parallel."""
    *outer, column = spatial(block)
    lanes = _side(block, target)
    vectors = max(1, min(LINE_BYTES // _bytes(block), typical_extent(column.extent)) // lanes)
    most = max(1, typical_extent(column.extent) // lanes)
    vectors = sch.choose(f"{block.name}.line", vectors, lambda: [n for n in LINES if n <= most])
    height = min(lanes, as_int(rows.extent) or lanes)
    blocks = -(-typical_extent(rows.extent) // height)
    even = -(-blocks // -(-blocks * height // MAX_ROWS))
    whole = largest_divisor(blocks, even)
    squares = whole if 2 * whole >= even else even
    longest = 2 * MAX_ROWS // height
    squares = sch.choose(
        f"{block.name}.block", squares, lambda: [n for n in divisors(blocks) if n <= longest]
    )
    run = _run(column, squares * height, vectors * lanes, target)
    run = sch.choose(f"{block.name}.run", run, lambda: [n for n in (1, 8, RUN) if n <= most])
    around = [loop_of(it) for it in outer if it is not rows]
    sizes = _Sizes(squares, height, vectors, lanes, run)
    chunk, strip = _squares(sch, around, loop_of(rows), loop_of(column), sizes)
    # A line of unknown length has exact remainders, which only its own loop can have.
    return [*around, chunk] if as_int(column.extent) is None else [*around, chunk, strip]


def _run(column: Iter, rows: int, line: int, target: CpuTarget) -> int:
    """The lines of a row that are written one after the other."""
    lines = (as_int(column.extent) or 0) // line
    if rows <= target.costs.prefetched_streams or lines < 2 * MIN_STRIPS:
        return 1
    strips = max(MIN_STRIPS, -(-lines // RUN))
    return -(-lines // strips)


def transpose_at(sch: Schedule, name: str, at: str, target: CpuTarget) -> None:
    """Transpose what the loop `at` has finished, a row of squares after the other.

    Its rows are written to the end one after the other, in streams that are prefetched.
    """
    block = block_graph(sch.func).block(name)
    rows = crossing_axis(block, block_graph(sch.func), target)
    assert rows is not None
    loops = sch.reverse_compute_at(name, at)
    row, column = loops[block.iters.index(rows)], loops[-1]
    around = [loop for loop in loops if loop not in (row, column)]
    side = _side(block, target)
    _squares(sch, around, row, column, _Sizes(1, side, 1, side))


class _Sizes(NamedTuple):
    """Squares of rows of a height; runs of lines of vectors."""

    squares: int
    height: int
    vectors: int
    lanes: int
    run: int = 1


def _squares(
    sch: Schedule, around: list[str], rows: str, columns: str, sizes: _Sizes
) -> tuple[str, str]:
    """Cut two loops into squares of vectors; the loops over blocks of rows, and over strips."""
    strip, vector, lane = sch.split(columns, [None, sizes.vectors, sizes.lanes])
    chunk, square, row = sch.split(rows, [None, sizes.squares, sizes.height])
    lines = []
    if sizes.run > 1:
        strip, line = sch.split(strip, [None, sizes.run])
        lines = [line]
    sch.reorder(*around, chunk, strip, square, *lines, vector, row, lane)
    sch.unroll(vector)
    sch.unroll(row)
    for loop in (square, row, vector, *lines):
        sch.annotate(loop, PARTITION.key, 2)
    sch.vectorize(lane)
    return chunk, strip


def _bytes(block: Block) -> int:
    return value_of(block).dtype.bytes
