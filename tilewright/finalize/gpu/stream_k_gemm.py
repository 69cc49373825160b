"""A stream-K GEMM: every block gets the same number of k-tiles, across tile boundaries.

    tiles       |      0      |      1      |      2      |       7 k-tiles each
    k-tiles     0 1 2 3 4 5 6 0 1 2 3 4 5 6 0 1 2 3 4 5 6
    blocks      |    0    |    1    |    2    |    3    | ...     5 k-tiles each

A block starts with the last tile of its range. Of a tile that ends in another block's range it
stores the partial accumulators and signals a flag. For a tile that ends in its own range it awaits
the flags of the blocks before, adds their partials (the fix-up), and runs the epilogue. All
blocks finish at about the same time, whatever the number of tiles. A block waits only for blocks
of a lower index, which start no later than itself and store their partials first.

A thread stores its accumulators in the order of its registers, 16 bytes beside those of its
neighbour; the same thread of another block reads them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tilewright.arith.expr import Expr, Load, Var, as_int, const, maximum, minimum
from tilewright.arith.vector import Ramp, Shuffle
from tilewright.finalize.gpu.distribute_registers import COLS_PER_LANE, LANES_PER_ROW, ROW_STEP
from tilewright.finalize.gpu.mainloop import GemmMainloop, gemm_mainloop, pipeline_of, products
from tilewright.finalize.gpu.persistent_gemm import multiply, wait_for_product
from tilewright.finalize.gpu.roles import (
    block_of,
    consumer,
    producer,
    specialized_kernel,
    with_private_buffers,
)
from tilewright.finalize.gpu.select_stage import one_element
from tilewright.finalize.gpu.stream_k import StreamK, flags_name, partials_name
from tilewright.finalize.gpu.tma_pipeline import Counter, TmaPipeline
from tilewright.ir.loop.nodes import Alloc, Await, For, If, Let, Region, Signal, Stmt, Store
from tilewright.ir.loop.thread_mapping import THREAD, WARP, WARP_SIZE, threads_of
from tilewright.ir.loop.walk import seq, statements_in
from tilewright.target.gpu import GpuTarget

# The producer also computes where its range of k-tiles ends.
PRODUCER_REGISTERS = 40
# Accumulators that a thread moves in one access of 16 bytes, and the neighbours among them.
VECTOR, PAIR = 4, 2


def stream_k_gemm(grid: For, plan: StreamK, target: GpuTarget) -> For:
    """The roles of a loop over output tiles whose k-tiles are divided among blocks."""
    parts = gemm_mainloop(grid.body)
    pipeline = pipeline_of(grid, parts.k_loop, parts.operands)
    warps = threads_of(grid.body) // WARP_SIZE
    made = producer(grid, _produce(grid, parts, pipeline, plan), PRODUCER_REGISTERS)
    body = _consume(grid, parts, pipeline, plan)
    return specialized_kernel(
        grid,
        const(plan.blocks),
        (pipeline,),
        (),
        pipeline.start(warps),
        (consumer(warps, body, target, made.registers), made),
    )


def _segments(grid: For, plan: StreamK, tile: str, body: Callable[[Var, Expr, Expr], Stmt]) -> Stmt:
    """The tiles in a block's range of k-tiles, the last one first.

    `body` gets the tile, and where its k-tiles of this block begin and end.
    """
    block, n = block_of(grid), plan.k_tiles
    first = block * plan.k_tiles_per_block
    end = minimum(first + plan.k_tiles_per_block, const(plan.total))
    last = (end - 1) // n
    turn, begin, until = (Var(f"{tile}.{what}") for what in ("turn", "begin", "end"))
    start = Var(tile) * n
    made: Stmt = Let(begin.name, maximum(first - start, const(0)), body(Var(tile), begin, until))
    made = Let(until.name, minimum(end - start, const(n)), made)
    return For(turn.name, last - first // n + 1, "serial", Let(tile, last - turn, made))


def _produce(grid: For, parts: GemmMainloop, pipeline: TmaPipeline, plan: StreamK) -> Stmt:
    """The k-tiles of the block's range."""
    count, name = Counter(f"{grid.name}.produced"), parts.k_loop.name
    step = Var(f"{name}.next")

    def copies(tile: Var, begin: Expr, end: Expr) -> Stmt:
        copy = pipeline.copy(count.plus(step), {grid.name: tile, name: begin + step})
        return seq(For(step.name, end - begin, "serial", copy), count.advance(end - begin))

    return count.around(const(0), _segments(grid, plan, f"{grid.name}.next", copies))


def _consume(grid: For, parts: GemmMainloop, pipeline: TmaPipeline, plan: StreamK) -> Stmt:
    """The tiles of the block's range: partials are stored, complete tiles fixed up."""
    count, partials = Counter(f"{grid.name}.consumed"), _Partials(grid, parts)
    block, other = block_of(grid), Var(f"{grid.name}.other")

    def tile(number: Var, begin: Expr, end: Expr) -> Stmt:
        before = number * plan.k_tiles // plan.k_tiles_per_block
        fixup = For(other.name, block - before, "serial", partials.add(before + other))
        steps = seq(
            *parts.prologue,
            multiply(parts, pipeline, count, begin, end),
            wait_for_product(parts.product),
            pipeline.release(count.plus(end - begin - 1)),
            count.advance(end - begin),
            If(end < plan.k_tiles, partials.store(block)),
            If(end.eq(const(plan.k_tiles)), seq(fixup, *parts.epilogue)),
        )
        return with_private_buffers(grid, steps)

    return count.around(const(0), _segments(grid, plan, grid.name, tile))


class _Partials:
    """The partial tiles of blocks in memory, with a flag for each warp of a block."""

    def __init__(self, grid: For, parts: GemmMainloop) -> None:
        self.grid = grid
        tile = products(parts.product)[0]
        allocs = (s.buffer for s in statements_in(grid) if isinstance(s, Alloc))
        self.accumulators = next(b for b in allocs if b.name == tile.dst.buffer)
        ((_, self.row),) = tile.dst.ranges
        self.threads = threads_of(grid.body)

    def store(self, block: Expr) -> Stmt:
        """Store the accumulators of every thread, and signal it."""
        thread = Var(f"{self.grid.name}.store")
        stores = [
            Store(self.name, (place,), Shuffle(self._pair(a), self._pair(b), tuple(range(VECTOR))))
            for (a, b), place in self._vectors(block, thread)
        ]
        warp = Var(f"{self.grid.name}.signal")
        return seq(
            For(thread.name, const(self.threads), THREAD, seq(*stores)),
            For(warp.name, self._warps, WARP, Signal(self._flag(block, warp))),
        )

    def add(self, block: Expr) -> Stmt:
        """Add the partials of another block to the accumulators of every thread."""
        thread = Var(f"{self.grid.name}.add")
        adds = []
        for pairs, place in self._vectors(block, thread):
            vector = Load(self.name, (place,), self.accumulators.dtype)
            for n, pair in enumerate(pairs):
                own, some = self._pair(pair), tuple(range(PAIR * n, PAIR * (n + 1)))
                index = (Ramp(const(pair), 1, PAIR),)
                adds.append(
                    Store(self.accumulators.name, index, own + Shuffle(vector, vector, some))
                )
        warp = Var(f"{self.grid.name}.await")
        return seq(
            For(warp.name, self._warps, WARP, Await(self._flag(block, warp), const(1))),
            For(thread.name, const(self.threads), THREAD, seq(*adds)),
        )

    @property
    def name(self) -> str:
        """The buffer of partial tiles."""
        return partials_name(self.grid.name)

    @property
    def _warps(self) -> Expr:
        return const(self.threads // WARP_SIZE)

    def _flag(self, block: Expr, warp: Expr) -> Region:
        return one_element(flags_name(self.grid.name), block * self._warps + warp)

    def _pair(self, element: int) -> Expr:
        """Two neighbouring accumulators of a thread."""
        index = Ramp(const(element), 1, PAIR)
        return Load(self.accumulators.name, (index,), self.accumulators.dtype)

    def _vectors(self, block: Expr, thread: Expr) -> Iterator[tuple[tuple[int, int], Expr]]:
        """The accumulators of a thread, a vector at a time, and where a block stores them."""
        pairs = self._own_pairs()
        vectors = list(zip(pairs[::2], pairs[1::2], strict=True))
        first = block * (len(vectors) * self.threads) + thread
        for n, both in enumerate(vectors):
            yield both, Ramp((first + n * self.threads) * VECTOR, 1, VECTOR)

    def _own_pairs(self) -> list[int]:
        """The elements of a thread, by pairs: see `distribute_registers.py`."""
        size, wide = as_int(self.accumulators.shape[0]), as_int(self.row)
        assert size is not None
        assert wide is not None
        rows = range(0, size, ROW_STEP * wide)
        columns = range(0, wide, LANES_PER_ROW * COLS_PER_LANE)
        return [r + c for r in rows for c in columns]
