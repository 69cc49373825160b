"""Warp-specialized persistent GEMM, with one consumer group or ping-pong between several.

    for b in grid(768)                          producer: copy the k-tiles of b, b + 132, ...
        {persistent=132, pingpong=2} {          consumer groups, each for every second b:
      C = 0                                       C = 0; wait for the order barrier
      for k in serial(n) {               →        for k in serial(n) {
        copy k-tile k to A and B                    issue C += A * B of k-tile k
        C += A * B                                  wait for k-tile k - 1: release its stage
      }                                           }
      epilogue of C                               arrive at the next group's order barrier
    }                                             wait for C; epilogue of C

While one group multiplies, the other runs its epilogue. The k-tiles of all tiles go through one
pipeline in order. An mbarrier has one bit of parity, so a consumer must not be more than one phase
away from the stage it waits for. The order barrier guarantees that: a group starts its mainloop
when the group before it has issued its last k-tile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tilewright.arith.bounds import Interval
from tilewright.codegen.gpu.block_emitter import BlockEmitter
from tilewright.codegen.gpu.mainloop import gemm_mainloop, products
from tilewright.codegen.gpu.warp_specialized import WarpSpecializedKernel
from tilewright.ir.loop.nodes import Stmt, Tile
from tilewright.ir.loop.thread_mapping import THREAD, WARP_SIZE
from tilewright.ir.loop.walk import rewrite_stmts
from tilewright.schedule.intrin.nvidia.wgmma import async_name, issue_name

# The one pipeline, of both operands.
OPERANDS = 0


class PingPongGemm(WarpSpecializedKernel):
    """Emits a persistent GEMM: the mainloop has one product."""

    def __init__(self, emitter: BlockEmitter) -> None:
        self.parts = gemm_mainloop(emitter.launch.body)
        super().__init__(emitter, self.parts.k_loop, (self.parts.operands,))

    def _producer(self) -> None:
        """The k-tiles of all tiles of the block."""
        self.em.single_thread = True
        k_tiles = self._counter()
        with self._tile_loop() as count, self.fn.for_range("0", count) as k:
            self._copy(OPERANDS, k, self._value(k_tiles))
            self._next(k_tiles)
        self.ex.pointers.update(self.bases)
        self.em.single_thread = False

    def _consumer(self) -> None:
        """Every n-th tile of n groups; the k-tiles of the others are skipped."""
        fn, groups = self.fn, self.em.launch.pingpong_groups
        block, blocks = self._block()
        group = self._group_index()
        first = fn.let(f"add i64 {block}, {fn.let(f'mul i64 {group}, {blocks}')}")
        self.ex.begin_statement()
        each = self.ex.value(self.k_loop.extent)
        k_tiles, tiles = self._counter(), self._counter()
        self._skip(k_tiles, fn.let(f"mul i64 {group}, {each}"))
        with self._tile_loop(first, fn.let(f"mul i64 {blocks}, {groups}")) as count:
            self._all(self.parts.prologue)
            self._order_wait(group, self._value(tiles))
            with fn.for_range("0", count) as k:
                self._step(k, self._value(k_tiles))
                self._next(k_tiles)
            self._order_arrive(group)
            self._next(tiles)
            self._wgmma_wait(self.parts.product)
            self._release_stage(OPERANDS, fn.let(f"add i32 {self._value(k_tiles)}, -1"))
            self._skip(k_tiles, fn.let(f"mul i64 {each}, {groups - 1}"))
            self._all(self.parts.epilogue)

    def _group_index(self) -> str:
        """Number the threads within their consumer group; gives the index of the group."""
        fn, ex, threads = self.fn, self.ex, self.em.launch.threads
        number = ex.values[THREAD]
        ex.values[THREAD] = fn.let(f"urem i64 {number}, {threads}")
        ex.ranges[THREAD] = Interval(0, threads - 1)
        return fn.let(f"udiv i64 {number}, {threads}")

    # The order barriers: of each group, an mbarrier at which the group before it arrives.

    def _further_mbarriers(self) -> Iterable[tuple[str, int]]:
        warps = self.em.launch.threads // WARP_SIZE
        return [
            (self._order_index(str(group)), warps)
            for group in range(self.em.launch.pingpong_groups)
        ]

    def _order_index(self, group: str) -> str:
        return self.fn.let(f"add i32 {group}, {2 * self.stages}")

    def _order_wait(self, group: str, tile: str) -> None:
        """Wait for the group before; the first group starts with its first tile."""
        fn = self.fn
        if self.em.launch.pingpong_groups == 1:
            return
        narrow = fn.let(f"trunc i64 {group} to i32")
        first = fn.let(f"zext i1 {fn.let(f'icmp eq i64 {group}, 0')} to i32")
        parity = fn.let(f"and i32 {fn.let(f'add i32 {tile}, {first}')}, 1")
        self.em.mbarrier_wait(f"ptr {self._mbarrier(self._order_index(narrow))}", parity)

    def _order_arrive(self, group: str) -> None:
        """Let the next group start its mainloop."""
        fn, groups = self.fn, self.em.launch.pingpong_groups
        if groups == 1:
            return
        following = fn.let(f"urem i64 {fn.let(f'add i64 {group}, 1')}, {groups}")
        narrow = fn.let(f"trunc i64 {following} to i32")
        self._arrive(self._order_index(narrow))

    def _skip(self, k_tiles: str, count: str) -> None:
        narrow = self.fn.let(f"trunc i64 {count} to i32")
        following = self.fn.let(f"add i32 {self._value(k_tiles)}, {narrow}")
        self.fn.emit(f"store i32 {following}, ptr {k_tiles}, align 4")

    def _step(self, k: str, now: str, first: str = "0") -> None:
        """Issue the product of a k-tile, and release the stage of the one before, if any."""
        tiles = products(self.parts.product)

        def in_flight(s: Stmt) -> Stmt | None:
            if not isinstance(s, Tile):
                return None
            if s is tiles[-1]:
                return replace(s, intrinsic=async_name(s.intrinsic, len(tiles)))
            return replace(s, intrinsic=issue_name(s.intrinsic, zero=False))

        fn = self.fn
        self._wait_stage(OPERANDS, False, now)
        self._bind(k)
        self._select_stage(OPERANDS, now)
        with fn.scope():
            self.em.emit(rewrite_stmts(self.parts.product, in_flight))
        before = fn.let(f"add i32 {now}, -1")
        self._release_stage(OPERANDS, before, unless=fn.let(f"icmp eq i64 {k}, {first}"))
