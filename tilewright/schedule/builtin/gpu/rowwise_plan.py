"""How a row is dealt out to threads: how many have one, what each has of it, what stays with it."""

from __future__ import annotations

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
from tilewright.target.gpu import GpuTarget

# Threads that may share a row to keep the GPU busy, or if its length is not known; and those of a
# block where rows are so short that it has several: layer norms of 196608 rows of 128 take 26.3 us
# with 128 of them and 26.6 with 256 or 512.
THREADS, SHARING = 256, 128
# Elements of a row that a thread has, where there are rows for all threads; and where that would
# be more than so many threads, which have to meet, or where a row is gone through once.
ELEMENTS, MORE_ELEMENTS, MANY = 16, 32, 128
# Or where one warp has no more than so many pieces a thread, instead of two warps: layer norms of
# 4096 rows of 768 f16 take 7.2 us, not 8.9; softmax of 8192 rows of 1000 f32, eight pieces, 17.9
# and 17.0.
PIECES = 4
# Bytes of a row that its threads read at once, at least.
LINE = 128
# Words that may be held in the registers of a thread.
WORDS = 96
# The part of the threads that may have no row, where the rows of a block do not divide all.
MOST_IDLE = 1 / 8
# Threads for each multiprocessor below which more of them are better than more work for each.
BUSY_THREADS = 512


@node
class RowwisePlan:
    """`several` rows a block of threads, `lanes` threads a row, `width` neighbours at once each.

    Where `held`, a row stays in registers.
    """

    several: int
    lanes: int
    width: int
    held: bool


def plan_rows(graph: BlockGraph, rows: int, target: GpuTarget) -> RowwisePlan:
    """The plan for blocks that share rows, numbered by their first axes."""
    counts = spatial(graph.blocks[-1])[:rows]
    length = _length(graph, rows)
    if length is not None and _is_held(graph, rows):
        bits = _bits(graph, rows)
        # A row of one chunk would have one thread, and nothing to combine.
        width = min(gcd(target.lanes(bits), length), max(1, length // 2))
        line = width, 8 * LINE // (width * bits)
        once = len(wide_blocks(graph, rows)) == 1
        lanes = _lanes(length // width, line, counts, once, target)
        words = sum(graph.buffers[name].dtype.bits / 32 for name in held_arrays(graph, rows))
        if lanes <= target.threads_per_block and words * length / lanes <= WORDS:
            return RowwisePlan(_several(lanes, counts, target), lanes, width, True)
    longest = max(typical_extent(_columns(b, rows)) for b in graph.blocks)
    lanes = max(target.warp_size, min(THREADS, _power(-(-longest // 4))))
    return RowwisePlan(_several(lanes, counts, target), lanes, 1, False)


def wide_blocks(graph: BlockGraph, rows: int) -> list[Block]:
    """The blocks that go through all elements of a row."""
    return [b for b in graph.blocks if reductions(b) or len(spatial(b)) > rows]


def held_arrays(graph: BlockGraph, rows: int) -> list[str]:
    """Arrays of whole rows: those that are made here, and those that a sum reads."""
    made = {b.writes[0].buffer for b in graph.blocks}
    found: dict[str, None] = {}
    for b in graph.blocks:
        for load in reads_of(b):
            whole = len(load.indices) == rows + 1 and load.buffer not in graph.outputs
            if whole and (load.buffer in made or (reductions(b) and _is_own(load, b, rows))):
                found[load.buffer] = None
    return list(found)


def _is_held(graph: BlockGraph, rows: int) -> bool:
    """Whether each element of a row is only needed where it is made."""
    made = {b.writes[0].buffer for b in graph.blocks}
    kept = set(held_arrays(graph, rows))
    return bool(kept) and all(
        _is_own(load, b, rows)
        for b in graph.blocks
        for load in reads_of(b)
        if load.buffer in kept or (load.buffer in made and len(load.indices) > rows)
    )


def _is_own(load: Load, block: Block, rows: int) -> bool:
    """Whether a load is of the element that the block is at."""
    axes = [*spatial(block), *reductions(block)]
    return load.mask is None and load.indices == tuple(Var(it.name) for it in axes)


def _length(graph: BlockGraph, rows: int) -> int | None:
    """The length of all rows, if it is known and they have one axis."""
    found = set()
    for b in wide_blocks(graph, rows):
        axes = reductions(b) or spatial(b)[rows:]
        found.add(as_int(axes[0].extent) if len(axes) == 1 else None)
    return next(iter(found)) if len(found) == 1 else None


def _columns(block: Block, rows: int) -> Expr:
    axes = reductions(block) or spatial(block)[rows:]
    return simplify(product(tuple(it.extent for it in axes)))


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
    chunks: int, line: tuple[int, int], counts: tuple[Iter, ...], once: bool, target: GpuTarget
) -> int:
    """The threads that share a row of so many chunks: a power of two.

    `line` is the elements of a chunk, and the threads whose chunks are a line of memory.
    """
    most, (width, least) = _power(chunks), line
    few, more = (_power(-(-chunks * width // n)) for n in (MORE_ELEMENTS, ELEMENTS))
    alone = few == target.warp_size and chunks <= PIECES * few
    wanted = few if once or alone else min(more, max(few, MANY))
    lanes = max(min(least, most), wanted)
    busy = target.sm_count * BUSY_THREADS
    while lanes < min(most, THREADS) and _number(counts) * lanes < busy:
        lanes *= 2
    return lanes


def _several(lanes: int, counts: tuple[Iter, ...], target: GpuTarget) -> int:
    """The rows of a block: threads of several warps meet only where they are all of the block."""
    several = max(1, SHARING // lanes) if lanes <= target.warp_size and counts else 1
    while several > 1 and _number(counts) // several < 2 * target.sm_count:
        several //= 2
    last = as_int(counts[-1].extent) if counts else None
    while last is not None and several > 1 and -last % several > last * MOST_IDLE:
        several //= 2
    return several


def _number(counts: tuple[Iter, ...]) -> int:
    return typical_extent(simplify(product(tuple(it.extent for it in counts))))


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()
