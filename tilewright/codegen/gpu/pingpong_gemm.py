"""Blocks of threads of which some only copy, and groups of the others multiply in turns.

    for b in grid(768) {persistent=132, pingpong=2} {    one thread apart:
      C = 0                                             copy all steps of b, b + 132, b + 264, ...
      for k in serial(n) {                              128 others, and 128 more, each 2nd b:
        copy step k to A and B                   →      C = 0; wait for the group before
        C += A * B                                      for k in serial(n) {
      }                                                   begin C += A * B of step k
      formulas of C                                       wait for step k - 1: its room is free
    }                                                   }
                                                        tell the next group
                                                        wait for C; formulas of C

So one group multiplies while another has formulas and writes results. The steps of all tiles go
through one ring, in order. A place tells even turns from odd ones only: a group that waited for a
step of which the ring is not even at the turn before would take that for its own. So it waits until
the group before it, of those in turns, has begun its last step.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.arith.bounds import Interval
from tilewright.codegen.gpu.allreduce import WARP
from tilewright.codegen.gpu.mainloop import product_parts, products
from tilewright.codegen.gpu.warp_specialized import Apart
from tilewright.ir.loop.nodes import Stmt, Tile
from tilewright.ir.loop.thread_mapping import THREAD
from tilewright.ir.loop.walk import rewrite_stmts
from tilewright.schedule.intrin.nvidia.wgmma import ahead_name, begun_name

if TYPE_CHECKING:
    from tilewright.codegen.gpu.nvptx import LaunchEmitter

# The one ring.
RING = 0


class ProductApart(Apart):
    """Emits a launch whose blocks have a loop of one product."""

    def __init__(self, emitter: LaunchEmitter) -> None:
        self.parts = product_parts(emitter.launch.body)
        super().__init__(emitter, self.parts.walk, (self.parts.ring,))

    def _copy_all(self) -> None:
        """All steps of all turns."""
        self.em.in_thread = True
        steps = self._count()
        with self._turns() as count, self.fn.count("0", count) as k:
            self._copy(RING, k, self._value(steps))
            self._next(steps)
        self.ex.pointers.update(self.bases)
        self.em.in_thread = False

    def _work(self) -> None:
        """Every so many turns, as there are groups; steps of the others are passed by."""
        fn, groups = self.fn, self.em.launch.groups
        block, blocks = self._block()
        group = self._own_number()
        first = fn.let(f"add i64 {block}, {fn.let(f'mul i64 {group}, {blocks}')}")
        self.ex.begin_statement()
        each = self.ex.value(self.walk.extent)
        steps, tiles = self._count(), self._count()
        self._pass_by(steps, fn.let(f"mul i64 {group}, {each}"))
        with self._turns(first, fn.let(f"mul i64 {blocks}, {groups}")) as count:
            self._all(self.parts.before)
            self._await_group(group, self._value(tiles))
            with fn.count("0", count) as k:
                self._step(k, self._value(steps))
                self._next(steps)
            self._tell_group(group)
            self._next(tiles)
            self._settle(self.parts.product)
            self._leave(RING, fn.let(f"add i32 {self._value(steps)}, -1"))
            self._pass_by(steps, fn.let(f"mul i64 {each}, {groups - 1}"))
            self._all(self.parts.after)

    def _own_number(self) -> str:
        """Let threads be numbered within their group; the number of that."""
        fn, ex, threads = self.fn, self.ex, self.em.launch.threads
        number = ex.values[THREAD]
        ex.values[THREAD] = fn.let(f"urem i64 {number}, {threads}")
        ex.ranges[THREAD] = Interval(0, threads - 1)
        return fn.let(f"udiv i64 {number}, {threads}")

    # Of each group, a place that counts the turns of the one before it.

    def _further_counters(self) -> Iterable[tuple[str, int]]:
        warps = self.em.launch.threads // WARP
        return [(self._turn_place(str(group)), warps) for group in range(self.em.launch.groups)]

    def _turn_place(self, group: str) -> str:
        return self.fn.let(f"add i32 {group}, {2 * self.stages}")

    def _await_group(self, group: str, tile: str) -> None:
        """Wait for the group before; the first one has its first tile at once."""
        fn = self.fn
        if self.em.launch.groups == 1:
            return
        narrow = fn.let(f"trunc i64 {group} to i32")
        first = fn.let(f"zext i1 {fn.let(f'icmp eq i64 {group}, 0')} to i32")
        odd = fn.let(f"and i32 {fn.let(f'add i32 {tile}, {first}')}, 1")
        self.em.wait_at(f"ptr {self._place(self._turn_place(narrow))}", odd)

    def _tell_group(self, group: str) -> None:
        """Let the next group multiply."""
        fn, groups = self.fn, self.em.launch.groups
        if groups == 1:
            return
        following = fn.let(f"urem i64 {fn.let(f'add i64 {group}, 1')}, {groups}")
        narrow = fn.let(f"trunc i64 {following} to i32")
        self._arrive(self._turn_place(narrow))

    def _pass_by(self, steps: str, more: str) -> None:
        narrow = self.fn.let(f"trunc i64 {more} to i32")
        following = self.fn.let(f"add i32 {self._value(steps)}, {narrow}")
        self.fn.emit(f"store i32 {following}, ptr {steps}, align 4")

    def _step(self, k: str, now: str, first: str = "0") -> None:
        """A step is begun, and the one before it is through, unless it is the first."""
        tiles = products(self.parts.product)

        def ahead(s: Stmt) -> Stmt | None:
            if not isinstance(s, Tile):
                return None
            if s is tiles[-1]:
                return replace(s, intrinsic=ahead_name(s.intrinsic, len(tiles)))
            return replace(s, intrinsic=begun_name(s.intrinsic, first=False))

        fn = self.fn
        self._await(RING, False, now)
        self._bind(k)
        self._room(RING, now)
        with fn.scope():
            self.em.emit(rewrite_stmts(self.parts.product, ahead))
        before = fn.let(f"add i32 {now}, -1")
        self._leave(RING, before, unless=fn.let(f"icmp eq i64 {k}, {first}"))
