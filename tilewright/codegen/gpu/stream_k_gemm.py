"""Stream-K GEMM: every block gets the same number of k-tiles, across tile boundaries.

    tiles       |      0      |      1      |      2      |       7 k-tiles each
    k-tiles     0 1 2 3 4 5 6 0 1 2 3 4 5 6 0 1 2 3 4 5 6
    blocks      |    0    |    1    |    2    |    3    | ...     5 k-tiles each

A block starts with the last tile of its range. Of a tile that ends in another block's range it
stores the partial accumulators and raises a flag. For a tile that ends in its own range it waits
for the flags of the blocks before, adds their partials (the fix-up), and runs the epilogue. All
blocks finish at about the same time, whatever the number of tiles. A block waits only for blocks
of a lower index, which start no later than itself and store their partials first.

A thread stores its accumulators in the order of its registers, 16 bytes beside those of its
neighbour; the same thread of another block reads them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import as_int
from tilewright.codegen.gpu.mainloop import products
from tilewright.codegen.gpu.pingpong_gemm import OPERANDS, PingPongGemm
from tilewright.codegen.llvm.types import memory_type
from tilewright.finalize.gpu.distribute_registers import COLS_PER_LANE, LANES_PER_ROW, ROW_STEP
from tilewright.finalize.gpu.stream_k import StreamK, flags_name, partials_name
from tilewright.ir.loop.nodes import Alloc, Buffer
from tilewright.ir.loop.thread_mapping import THREAD, WARP_SIZE
from tilewright.ir.loop.walk import statements_in

# Publishes what the threads of a warp have stored: `st.release` to its flag.
_SIGNAL = (
    "{\\0A.reg .pred p;\\0Abar.warp.sync 0xffffffff;\\0Asetp.eq.u32 p, $1, 0;\\0A"
    "@p st.release.gpu.global.u32 [$0], 1;\\0A}"
)
# Spins until a flag is set: `ld.acquire`.
_WAIT = (
    "{\\0A.reg .pred p;\\0A.reg .u32 v;\\0AWAIT:\\0A"
    "ld.acquire.gpu.global.u32 v, [$0];\\0Asetp.eq.u32 p, v, 0;\\0A@p bra WAIT;\\0A}"
)
SIGNAL_PARTIALS, WAIT_PARTIALS = "tw.partials.signal", "tw.partials.wait"
TEXTS = {
    SIGNAL_PARTIALS: f"""
define internal void @{SIGNAL_PARTIALS}(ptr %flag, i32 %lane) alwaysinline {{
  %place = addrspacecast ptr %flag to ptr addrspace(1)
  call void asm sideeffect "{_SIGNAL}", "l,r,~{{memory}}"(ptr addrspace(1) %place, i32 %lane)
  ret void
}}
""",
    WAIT_PARTIALS: f"""
define internal void @{WAIT_PARTIALS}(ptr %flag, i32 %lane) alwaysinline {{
  %place = addrspacecast ptr %flag to ptr addrspace(1)
  call void asm sideeffect "{_WAIT}", "l,~{{memory}}"(ptr addrspace(1) %place)
  ret void
}}
""",
}
# Accumulators that a thread moves in one access of 16 bytes.
VECTOR = 4


class StreamKGemm(PingPongGemm):
    """Emits a GEMM whose k-tiles are divided evenly among blocks.

    The producer also computes where its range of k-tiles ends.
    """

    producer_registers = 40

    def _producer(self) -> None:
        """The k-tiles of the block's range."""
        self.em.single_thread = True
        k_tiles = self._counter()
        with self._segments() as (begin, end, _), self.fn.for_range(begin, end) as k:
            self._copy(OPERANDS, k, self._value(k_tiles))
            self._next(k_tiles)
        self.ex.pointers.update(self.bases)
        self.em.single_thread = False

    def _consumer(self) -> None:
        """The tiles of the block's range: partials are stored, complete tiles fixed up."""
        fn, plan = self.fn, self._plan
        block, _ = self._block()
        k_tiles = self._counter()
        with self._segments() as (begin, end, before):
            self._all(self.parts.prologue)
            with fn.for_range(begin, end) as k:
                self._step(k, self._value(k_tiles), begin)
                self._next(k_tiles)
            self._wgmma_wait(self.parts.product)
            self._release_stage(OPERANDS, fn.let(f"add i32 {self._value(k_tiles)}, -1"))
            with self._if(f"icmp slt i64 {end}, {plan.k_tiles}"):
                self._store_partials(block)
            with self._if(f"icmp eq i64 {end}, {plan.k_tiles}"):
                with fn.for_range(before, block) as other:
                    self._fixup(other)
                self._all(self.parts.epilogue)

    @property
    def _plan(self) -> StreamK:
        plan = self.em.launch.stream_k
        assert plan is not None
        return plan

    @contextmanager
    def _segments(self) -> Iterator[tuple[str, str, str]]:
        """The tiles in a block's range of k-tiles, the last one first.

        Gives the begin and end of its k-tiles, and the first block that has k-tiles of the tile.
        """
        fn, launch, plan = self.fn, self.em.launch, self._plan
        block, _ = self._block()
        first = fn.let(f"mul i64 {block}, {plan.k_tiles_per_block}")
        end = self._least(fn.let(f"add i64 {first}, {plan.k_tiles_per_block}"), plan.total)
        last = fn.let(f"sdiv i64 {fn.let(f'add i64 {end}, -1')}, {plan.k_tiles}")
        own = fn.let(f"sub i64 {last}, {fn.let(f'sdiv i64 {first}, {plan.k_tiles}')}")
        with fn.for_range("0", fn.let(f"add i64 {own}, 1")) as n:
            tile = fn.let(f"sub i64 {last}, {n}")
            self.ex.values[launch.block_var] = tile
            self.ex.ranges[launch.block_var] = Interval(0, plan.tiles - 1)
            self.ex.begin_statement()
            start = fn.let(f"mul i64 {tile}, {plan.k_tiles}")
            here = fn.let(f"sub i64 {first}, {start}")
            later = fn.let(f"icmp sgt i64 {here}, 0")
            begin = fn.let(f"select i1 {later}, i64 {here}, i64 0")
            until = self._least(fn.let(f"sub i64 {end}, {start}"), plan.k_tiles)
            yield begin, until, fn.let(f"sdiv i64 {start}, {plan.k_tiles_per_block}")

    def _least(self, number: str, limit: int) -> str:
        less = self.fn.let(f"icmp slt i64 {number}, {limit}")
        return self.fn.let(f"select i1 {less}, i64 {number}, i64 {limit}")

    # Partial tiles.

    def _store_partials(self, block: str) -> None:
        """Store the accumulators of this thread, and raise the flag."""
        for accumulators, address in self._vectors(block):
            vector = "poison"
            for n, accumulator in enumerate(accumulators):
                one = self.fn.let(f"load {self._kind}, ptr {accumulator}, align 4")
                kind = f"<{VECTOR} x {self._kind}>"
                vector = self.fn.let(f"insertelement {kind} {vector}, {self._kind} {one}, i32 {n}")
            self.fn.emit(f"store <{VECTOR} x {self._kind}> {vector}, ptr {address}, align 16")
        self._flag(SIGNAL_PARTIALS, block)

    def _fixup(self, other: str) -> None:
        """Add the partials of another block to the accumulators of this thread."""
        self._flag(WAIT_PARTIALS, other)
        add = "fadd" if self._accumulators.dtype.is_float else "add"
        for accumulators, address in self._vectors(other):
            vector = self.fn.let(f"load <{VECTOR} x {self._kind}>, ptr {address}, align 16")
            for n, accumulator in enumerate(accumulators):
                one = self.fn.let(f"extractelement <{VECTOR} x {self._kind}> {vector}, i32 {n}")
                own = self.fn.let(f"load {self._kind}, ptr {accumulator}, align 4")
                total = self.fn.let(f"{add} {self._kind} {own}, {one}")
                self.fn.emit(f"store {self._kind} {total}, ptr {accumulator}, align 4")

    @property
    def _accumulators(self) -> Buffer:
        """The fragment that the mainloop accumulates in."""
        name = products(self.parts.product)[0].dst.buffer
        allocs = (s.buffer for s in statements_in(self.em.launch.body) if isinstance(s, Alloc))
        return next(b for b in allocs if b.name == name)

    @property
    def _kind(self) -> str:
        return memory_type(self._accumulators.dtype)

    def _own_elements(self) -> list[int]:
        """The elements of a thread: see `finalize/gpu/distribute_registers.py`."""
        size = as_int(self._accumulators.shape[0])
        ((_, row),) = products(self.parts.product)[0].dst.ranges
        wide = as_int(row)
        assert size is not None
        assert wide is not None
        rows, columns = (
            range(0, size, ROW_STEP * wide),
            range(0, wide, LANES_PER_ROW * COLS_PER_LANE),
        )
        return [r + c + n for r in rows for c in columns for n in range(COLS_PER_LANE)]

    def _vectors(self, block: str) -> Iterator[tuple[list[str], str]]:
        """The accumulators of this thread, a vector at a time, and where a block stores them."""
        fn, launch, found = self.fn, self.em.launch, self._own_elements()
        own, partials = (
            self.ex.pointers[b] for b in (self._accumulators.name, partials_name(launch.block_var))
        )
        first = fn.let(f"mul i64 {block}, {len(found) // VECTOR * launch.threads}")
        first = fn.let(f"add i64 {first}, {self.ex.values[THREAD]}")
        for n in range(0, len(found), VECTOR):
            number = fn.let(f"add i64 {first}, {n // VECTOR * launch.threads}")
            kind = f"[{VECTOR} x {self._kind}]"
            address = fn.let(f"getelementptr {kind}, ptr {partials}, i64 {number}")
            elements = found[n : n + VECTOR]
            yield (
                [fn.let(f"getelementptr {self._kind}, ptr {own}, i64 {e}") for e in elements],
                address,
            )

    def _flag(self, name: str, block: str) -> None:
        """Raise the flag of a block's partials, or wait for it: one flag a warp."""
        fn, launch = self.fn, self.em.launch
        fn.module.include(name, TEXTS[name])
        thread = self.ex.values[THREAD]
        first = fn.let(f"mul i64 {block}, {launch.threads // WARP_SIZE}")
        number = fn.let(f"add i64 {first}, {fn.let(f'udiv i64 {thread}, {WARP_SIZE}')}")
        flags = self.ex.pointers[flags_name(launch.block_var)]
        flag = fn.let(f"getelementptr i32, ptr {flags}, i64 {number}")
        lane = fn.let(f"trunc i64 {fn.let(f'urem i64 {thread}, {WARP_SIZE}')} to i32")
        fn.emit(f"call void @{name}(ptr {flag}, i32 {lane})")
        self.ex.loads.forget()
