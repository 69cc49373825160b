"""How rows are distributed over threads: lanes of a row, vectors of a lane, and registers."""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from tilewright.arith.expr import Expr, Load, Var, as_int, product
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    reads_of,
    reductions,
    spatial,
    typical_extent,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.sm_90a import OCCUPANCY, ROWWISE
from tilewright.target.gpu import GpuTarget

REGISTER_BITS = 32
# Vectors that a thread reads before it adds them.
PREFETCH_VECTORS = 8
# The most rows of a block that a search considers.
MAX_ROWS = 64


@node
class RowwisePlan:
    """The rows of a block, the threads of a row, and the elements that a thread reads at a time.

    `in_registers`: a row stays in the registers of its threads. Elsewhere a thread reads `prefetch`
    vectors before it adds them.
    """

    rows_per_block: int
    lanes_per_row: int
    vector_width: int
    in_registers: bool
    prefetch: int = 1


def plan_rows(graph: BlockGraph, rows: int, target: GpuTarget) -> RowwisePlan:
    """The plan for blocks whose first axes are the same rows."""
    counts = spatial(graph.blocks[-1])[:rows]
    length = _length(graph, rows)
    if length is not None and _fits_registers(graph, rows):
        bits = _bits(graph, rows)
        # A row of one vector would have one thread, and nothing to reduce.
        width = min(gcd(target.lanes(bits), length), max(1, length // 2))
        line = width, min(8 * ROWWISE.line_bytes // (width * bits), target.warp_size)
        once = len(wide_blocks(graph, rows)) == 1
        lanes = _lanes(length // width, line, counts, once, target)
        words = sum(graph.buffers[name].dtype.bits / 32 for name in register_arrays(graph, rows))
        if lanes <= target.threads_per_block and words * length / lanes <= ROWWISE.registers:
            return RowwisePlan(_rows_per_block(lanes, counts, target), lanes, width, True)
    return _read_again(graph, rows, target)


def _read_again(graph: BlockGraph, rows: int, target: GpuTarget) -> RowwisePlan:
    """The plan for rows that do not stay in registers: whole vectors, where the length is known."""
    counts = spatial(graph.blocks[-1])[:rows]
    wide = wide_blocks(graph, rows)
    lengths = (as_int(_axes(b, rows)[-1].extent) or 1 for b in wide)
    width = gcd(target.lanes(_bits(graph, rows)), *lengths)
    longest = max(typical_extent(_columns(b, rows)) for b in graph.blocks) // width
    lanes = max(target.warp_size, min(ROWWISE.max_lanes, _power(-(-longest // 4))))
    own = -(-longest // lanes)
    known = all(as_int(_columns(b, rows)) for b in wide)
    prefetch = -(-own // -(-own // PREFETCH_VECTORS)) if known else 1
    return RowwisePlan(_rows_per_block(lanes, counts, target), lanes, width, False, prefetch)


def _axes(block: Block, rows: int) -> tuple[Iter, ...]:
    """The axes along the rows of a block."""
    return reductions(block) or spatial(block)[rows:]


def choose_rows(sch: Schedule, graph: BlockGraph, rows: int, target: GpuTarget) -> RowwisePlan:
    """The plan by `plan_rows`, or what else fits the registers and threads of a block."""
    plan, name = plan_rows(graph, rows, target), graph.blocks[-1].name
    counts = spatial(graph.blocks[-1])[:rows]
    limits = _Limits(graph, rows, target)
    if plan.in_registers:
        kept = sch.choose(f"{name}.in_registers", True, lambda: (False, True))
        plan = plan if kept else _read_again(graph, rows, target)
    width = plan.vector_width
    if plan.in_registers:
        width = sch.choose(f"{name}.width", width, limits.widths)
    usual, kept = plan.lanes_per_row, plan.in_registers
    if width != plan.vector_width:
        usual = limits.nearest(usual, width, kept)
    lanes = sch.choose(f"{name}.lanes", usual, lambda: limits.lanes(width, kept))
    usual = plan.rows_per_block if lanes == plan.lanes_per_row else 1
    together = sch.choose(f"{name}.rows", usual, lambda: limits.rows(lanes, bool(counts)))
    return replace(plan, rows_per_block=together, lanes_per_row=lanes, vector_width=width)


class _Limits:
    """What plans for rows may be: by the length of a row, and what a block can hold."""

    def __init__(self, graph: BlockGraph, rows: int, target: GpuTarget) -> None:
        self.target = target
        self.length = _length(graph, rows)
        self.most = target.lanes(_bits(graph, rows))
        arrays = register_arrays(graph, rows)
        self.words = sum(graph.buffers[name].dtype.bits / REGISTER_BITS for name in arrays)

    def widths(self) -> list[int]:
        """Elements of a vector: powers of two that divide a row into more than one."""
        assert self.length is not None
        whole = min(gcd(self.most, self.length), max(1, self.length // 2))
        return [n for n in _powers(self.most) if n <= whole and self.length % n == 0]

    def lanes(self, width: int, in_registers: bool) -> list[int]:
        """Threads of a row: enough of them to keep it in registers, where it is to be."""
        counts = _powers(self.target.threads_per_block)[1:]
        if not in_registers:
            return [n for n in counts if n >= self.target.warp_size]
        assert self.length is not None
        most, room = _power(self.length // width), self.target.registers_per_thread // 2
        return [n for n in counts if n <= most and self.words * self.length / n <= room]

    def nearest(self, wanted: int, width: int, in_registers: bool) -> int:
        """The threads of a row that are nearest to a number."""
        return min(self.lanes(width, in_registers), key=lambda n: abs(n - wanted))

    def rows(self, lanes: int, several: bool) -> list[int]:
        """Rows of a block: one of several warps is a block of its own."""
        if not several or lanes > self.target.warp_size:
            return [1]
        return [n for n in _powers(self.target.threads_per_block // lanes) if n <= MAX_ROWS]


def _powers(most: int) -> list[int]:
    return [1 << n for n in range(most.bit_length()) if 1 << n <= most]


def wide_blocks(graph: BlockGraph, rows: int) -> list[Block]:
    """The blocks that iterate over all elements of a row."""
    return [b for b in graph.blocks if reductions(b) or len(spatial(b)) > rows]


def register_arrays(graph: BlockGraph, rows: int) -> list[str]:
    """Arrays of full rows: those computed here, and those that a reduction reads."""
    made = {b.writes[0].buffer for b in graph.blocks}
    found: dict[str, None] = {}
    for b in graph.blocks:
        for load in reads_of(b):
            whole = len(load.indices) == rows + 1 and load.buffer not in graph.outputs
            if whole and (load.buffer in made or (reductions(b) and _is_own(load, b, rows))):
                found[load.buffer] = None
    return list(found)


def _fits_registers(graph: BlockGraph, rows: int) -> bool:
    """Whether each element of a row is only read by the thread that computes it."""
    made = {b.writes[0].buffer for b in graph.blocks}
    kept = set(register_arrays(graph, rows))
    return bool(kept) and all(
        _is_own(load, b, rows)
        for b in graph.blocks
        for load in reads_of(b)
        if load.buffer in kept or (load.buffer in made and len(load.indices) > rows)
    )


def _is_own(load: Load, block: Block, rows: int) -> bool:
    """Whether a load reads the element at the block's own indices."""
    axes = [*spatial(block), *reductions(block)]
    return load.mask is None and load.indices == tuple(Var(it.name) for it in axes)


def _length(graph: BlockGraph, rows: int) -> int | None:
    """The length of all rows, if it is known and they have one axis."""
    found = set()
    for b in wide_blocks(graph, rows):
        axes = _axes(b, rows)
        found.add(as_int(axes[0].extent) if len(axes) == 1 else None)
    return next(iter(found)) if len(found) == 1 else None


def _columns(block: Block, rows: int) -> Expr:
    return simplify(product(tuple(it.extent for it in _axes(block, rows))))


def _bits(graph: BlockGraph, rows: int) -> int:
    """The bits of an element of the narrowest array of rows in memory."""
    made = {b.writes[0].buffer for b in graph.blocks} - set(graph.outputs)
    bits = [
        graph.buffers[name].dtype.bits
        for b in wide_blocks(graph, rows)
        for name in (*(x.buffer for x in reads_of(b) if x.indices), b.writes[0].buffer)
        if name not in made
    ]
    return max(8, min(bits, default=32))


def _lanes(
    vectors: int, line: tuple[int, int], counts: tuple[Iter, ...], once: bool, target: GpuTarget
) -> int:
    """The threads of a row of so many vectors: a power of two.

    `line` is the elements of a vector, and the threads of a warp whose vectors fill a cache line:
    more would be a block for each row, however short.
    """
    most, (width, least) = _power(vectors), line
    few, more = (
        _power(-(-vectors * width // n)) for n in (ROWWISE.more_elements, ROWWISE.elements)
    )
    alone = few == target.warp_size and vectors <= ROWWISE.warp_vectors * few
    wanted = few if once or alone else min(more, max(few, ROWWISE.many_lanes))
    lanes = max(min(least, most), wanted)
    busy = target.sm_count * OCCUPANCY.rowwise_threads
    while lanes < min(most, ROWWISE.max_lanes) and _number(counts) * lanes < busy:
        lanes *= 2
    return lanes


def _rows_per_block(lanes: int, counts: tuple[Iter, ...], target: GpuTarget) -> int:
    """The rows of a block: a row of several warps is a block of its own."""
    rows = max(1, ROWWISE.block_threads // lanes) if lanes <= target.warp_size and counts else 1
    while rows > 1 and _number(counts) // rows < 2 * target.sm_count:
        rows //= 2
    last = as_int(counts[-1].extent) if counts else None
    while last is not None and rows > 1 and -last % rows > last * ROWWISE.max_idle:
        rows //= 2
    return rows


def _number(counts: tuple[Iter, ...]) -> int:
    return typical_extent(simplify(product(tuple(it.extent for it in counts))))


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()
