"""Products whose blocks have equal shares of the steps of all tiles: stream-K.

    tiles       |      0      |      1      |      2      |       three of seven steps each
    steps       0 1 2 3 4 5 6 0 1 2 3 4 5 6 0 1 2 3 4 5 6
    blocks      |    0    |    1    |    2    |    3    | ...     five steps each

A block has the last tile of its share first. If that ends in another block, it hands over the sums
that it has; of a tile that ends in its own share it waits for those of the blocks before it, adds
them, and has what follows the sums. So all blocks end at about the same time, however many tiles
there are; those that are handed over come first, and each waits for lower numbers only, which do
not begin later than it does.

A thread finds what is handed over where the same thread of another block has written it: in the
order of its registers, 16 bytes beside those of its neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import as_int
from tilewright.codegen.gpu.allreduce import WARP
from tilewright.codegen.gpu.mainloop import products
from tilewright.codegen.gpu.pingpong_gemm import RING, ProductApart
from tilewright.codegen.llvm.types import memory_type
from tilewright.finalize.gpu.distribute_registers import APART, GROUP, PAIR
from tilewright.finalize.gpu.stream_k import StreamK, flags_name, partials_name
from tilewright.ir.loop.nodes import Alloc, Buffer
from tilewright.ir.loop.thread_mapping import THREAD
from tilewright.ir.loop.walk import statements

# What all threads of a warp have written is there for those that find it said.
_GIVE = (
    "{\\0A.reg .pred p;\\0Abar.warp.sync 0xffffffff;\\0Asetp.eq.u32 p, $1, 0;\\0A"
    "@p st.release.gpu.global.u32 [$0], 1;\\0A}"
)
# A thread stays here until it is said.
_TAKE = (
    "{\\0A.reg .pred p;\\0A.reg .u32 v;\\0AWAIT:\\0A"
    "ld.acquire.gpu.global.u32 v, [$0];\\0Asetp.eq.u32 p, v, 0;\\0A@p bra WAIT;\\0A}"
)
GIVE, TAKE = "tw.part.give", "tw.part.take"
TEXTS = {
    GIVE: f"""
define internal void @{GIVE}(ptr %said, i32 %lane) alwaysinline {{
  %place = addrspacecast ptr %said to ptr addrspace(1)
  call void asm sideeffect "{_GIVE}", "l,r,~{{memory}}"(ptr addrspace(1) %place, i32 %lane)
  ret void
}}
""",
    TAKE: f"""
define internal void @{TAKE}(ptr %said, i32 %lane) alwaysinline {{
  %place = addrspacecast ptr %said to ptr addrspace(1)
  call void asm sideeffect "{_TAKE}", "l,~{{memory}}"(ptr addrspace(1) %place)
  ret void
}}
""",
}
# Elements that a thread moves at once.
PIECE = 4


class SharedProduct(ProductApart):
    """Emits a launch whose blocks have shares of one product.

    A thread that copies counts tiles and where its share ends besides.
    """

    few = 40

    def _copy_all(self) -> None:
        """All steps of the block's share."""
        self.em.in_thread = True
        steps = self._count()
        with self._segments() as (begin, end, _), self.fn.count(begin, end) as k:
            self._copy(RING, k, self._value(steps))
            self._next(steps)
        self.ex.pointers.update(self.bases)
        self.em.in_thread = False

    def _work(self) -> None:
        """Tile by tile what the block has of it; sums that others end are handed over."""
        fn, shares = self.fn, self._shares
        block, _ = self._block()
        steps = self._count()
        with self._segments() as (begin, end, before):
            self._all(self.parts.before)
            with fn.count(begin, end) as k:
                self._step(k, self._value(steps), begin)
                self._next(steps)
            self._settle(self.parts.product)
            self._leave(RING, fn.let(f"add i32 {self._value(steps)}, -1"))
            with self._if(f"icmp slt i64 {end}, {shares.k_tiles}"):
                self._hand_over(block)
            with self._if(f"icmp eq i64 {end}, {shares.k_tiles}"):
                with fn.count(before, block) as other:
                    self._add(other)
                self._all(self.parts.after)

    @property
    def _shares(self) -> StreamK:
        shares = self.em.launch.shares
        assert shares is not None
        return shares

    @contextmanager
    def _segments(self) -> Iterator[tuple[str, str, str]]:
        """The tiles that a block has steps of, the last one first.

        Gives the first of those steps and where they end, and the block that the tile begins in.
        """
        fn, launch, shares = self.fn, self.em.launch, self._shares
        block, _ = self._block()
        first = fn.let(f"mul i64 {block}, {shares.k_tiles_per_block}")
        end = self._least(fn.let(f"add i64 {first}, {shares.k_tiles_per_block}"), shares.total)
        last = fn.let(f"sdiv i64 {fn.let(f'add i64 {end}, -1')}, {shares.k_tiles}")
        own = fn.let(f"sub i64 {last}, {fn.let(f'sdiv i64 {first}, {shares.k_tiles}')}")
        with fn.count("0", fn.let(f"add i64 {own}, 1")) as n:
            tile = fn.let(f"sub i64 {last}, {n}")
            self.ex.values[launch.number] = tile
            self.ex.ranges[launch.number] = Interval(0, shares.tiles - 1)
            self.ex.begin_statement()
            start = fn.let(f"mul i64 {tile}, {shares.k_tiles}")
            here = fn.let(f"sub i64 {first}, {start}")
            later = fn.let(f"icmp sgt i64 {here}, 0")
            begin = fn.let(f"select i1 {later}, i64 {here}, i64 0")
            until = self._least(fn.let(f"sub i64 {end}, {start}"), shares.k_tiles)
            yield begin, until, fn.let(f"sdiv i64 {start}, {shares.k_tiles_per_block}")

    def _least(self, number: str, limit: int) -> str:
        less = self.fn.let(f"icmp slt i64 {number}, {limit}")
        return self.fn.let(f"select i1 {less}, i64 {number}, i64 {limit}")

    # What is handed over.

    def _hand_over(self, block: str) -> None:
        """Write the sums of this thread, and say that they are there."""
        for sums, place in self._pieces(block):
            piece = "poison"
            for n, sum_ in enumerate(sums):
                one = self.fn.let(f"load {self._kind}, ptr {sum_}, align 4")
                vector = f"<{PIECE} x {self._kind}>"
                piece = self.fn.let(f"insertelement {vector} {piece}, {self._kind} {one}, i32 {n}")
            self.fn.emit(f"store <{PIECE} x {self._kind}> {piece}, ptr {place}, align 16")
        self._say(GIVE, block)

    def _add(self, other: str) -> None:
        """Add what another block has handed over to the sums of this thread."""
        self._say(TAKE, other)
        add = "fadd" if self._sums.dtype.is_float else "add"
        for sums, place in self._pieces(other):
            piece = self.fn.let(f"load <{PIECE} x {self._kind}>, ptr {place}, align 16")
            for n, sum_ in enumerate(sums):
                one = self.fn.let(f"extractelement <{PIECE} x {self._kind}> {piece}, i32 {n}")
                own = self.fn.let(f"load {self._kind}, ptr {sum_}, align 4")
                total = self.fn.let(f"{add} {self._kind} {own}, {one}")
                self.fn.emit(f"store {self._kind} {total}, ptr {sum_}, align 4")

    @property
    def _sums(self) -> Buffer:
        """What a warp has of the sums, as each of its threads sees it."""
        name = products(self.parts.product)[0].dst.buffer
        allocs = (s.buffer for _, s in statements(self.em.launch.body) if isinstance(s, Alloc))
        return next(b for b in allocs if b.name == name)

    @property
    def _kind(self) -> str:
        return memory_type(self._sums.dtype)

    def _own_sums(self) -> list[int]:
        """Which of them are the thread's own: see `finalize/gpu/distribute_registers.py`."""
        size = as_int(self._sums.shape[0])
        ((_, row),) = products(self.parts.product)[0].dst.ranges
        wide = as_int(row)
        assert size is not None
        assert wide is not None
        rows, columns = range(0, size, APART * wide), range(0, wide, GROUP * PAIR)
        return [r + c + n for r in rows for c in columns for n in range(PAIR)]

    def _pieces(self, block: str) -> Iterator[tuple[list[str], str]]:
        """The sums of this thread, some at a time, and where a block's of those are."""
        fn, launch, found = self.fn, self.em.launch, self._own_sums()
        own, parts = (self.ex.pointers[b] for b in (self._sums.name, partials_name(launch.number)))
        first = fn.let(f"mul i64 {block}, {len(found) // PIECE * launch.threads}")
        first = fn.let(f"add i64 {first}, {self.ex.values[THREAD]}")
        for n in range(0, len(found), PIECE):
            number = fn.let(f"add i64 {first}, {n // PIECE * launch.threads}")
            place = fn.let(f"getelementptr [{PIECE} x {self._kind}], ptr {parts}, i64 {number}")
            sums = found[n : n + PIECE]
            yield [fn.let(f"getelementptr {self._kind}, ptr {own}, i64 {s}") for s in sums], place

    def _say(self, name: str, block: str) -> None:
        """Say that a block's part is there, or wait until it is: each warp for its own."""
        fn, launch = self.fn, self.em.launch
        fn.module.include(name, TEXTS[name])
        thread = self.ex.values[THREAD]
        first = fn.let(f"mul i64 {block}, {launch.threads // WARP}")
        number = fn.let(f"add i64 {first}, {fn.let(f'udiv i64 {thread}, {WARP}')}")
        ready = self.ex.pointers[flags_name(launch.number)]
        place = fn.let(f"getelementptr i32, ptr {ready}, i64 {number}")
        lane = fn.let(f"trunc i64 {fn.let(f'urem i64 {thread}, {WARP}')} to i32")
        fn.emit(f"call void @{name}(ptr {place}, i32 {lane})")
        self.ex.loads.forget()
