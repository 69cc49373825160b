"""Blocks of threads of which some only copy, and the others have two products under way at a time.

    for k in serial(n) {pipeline_stages=2, warp_specialized=1} {          one thread apart:
      copy step k to K, V                     copy to K and V, as soon as their room is free
      S = A * K                             the others:
      formulas of S                  →        S = A * K, formulas of step 0
      O += W * V                              for k in serial(n - 1) {
    }                                           begin S = A * K of step k + 1
                                                begin O += W * V of step k
                                                wait for S; formulas of step k + 1
                                                wait for O; what touches O and W
                                              }
                                              O += W * V of the last step

So formulas run beside a product. All else is in `warp_specialized.py`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.codegen.gpu.mainloop import products, walk_parts
from tilewright.codegen.gpu.warp_specialized import Apart
from tilewright.ir.loop.nodes import Stmt, Tile
from tilewright.ir.loop.walk import rewrite_stmts, seq, statements
from tilewright.schedule.intrin.nvidia.wgmma import begun_name

if TYPE_CHECKING:
    from tilewright.codegen.gpu.nvptx import LaunchEmitter


class AttentionApart(Apart):
    """Emits a launch whose blocks have a loop of two products."""

    def __init__(self, emitter: LaunchEmitter) -> None:
        self.parts = walk_parts(emitter.launch.body)
        super().__init__(emitter, self.parts.walk, self.parts.rings)

    # What is copied.

    def _copy_all(self) -> None:
        """All steps of all turns, the first operand one step before the second."""
        self.em.in_thread = True
        turns, steps = self._count(), self._count()
        with self._turns() as count:
            for ring in range(2, len(self.parts.rings)):
                self._copy(ring, "0", self._value(turns))
            self._copy(0, "0", self._value(steps))
            with self.fn.count("0", count) as k:
                now, following = self._value(steps), self._next(steps)
                after = self.fn.let(f"add i64 {k}, 1")
                with self._if(f"icmp slt i64 {after}, {count}"):
                    self._copy(0, after, following)
                self._copy(1, k, now)
            self._next(turns)
        self.ex.pointers.update(self.bases)
        self.em.in_thread = False

    # What is computed.

    def _work(self) -> None:
        parts = self.parts
        lasting = range(2, len(self.parts.rings))
        turns, steps = self._count(), self._count()
        with self._turns() as count:
            self._all(parts.before)
            now, turn = self._value(steps), self._value(turns)
            self._bind("0")
            for ring in lasting:
                self._await(ring, False, turn)
                self._room(ring, turn)
            self._await(0, False, now)
            self._begin(0, now)
            self._settle(parts.first)
            self._leave(0, now)
            self._all((*parts.beside, *parts.late))
            last = self.fn.let(f"add i64 {count}, -1")
            with self.fn.count("0", last) as k:
                self._step(k, self._value(steps), self._next(steps))
            for ring in lasting:
                self._leave(ring, turn)
            now = self._value(steps)
            self._bind(last)
            self._await(1, False, now)
            self._begin(1, now)
            self._settle(parts.second)
            self._leave(1, now)
            self._next(steps)
            self._next(turns)
            self._all(parts.after)

    def _step(self, k: str, now: str, following: str) -> None:
        """The first product of the next step, the second of this one, formulas beside it."""
        parts = self.parts
        after = self.fn.let(f"add i64 {k}, 1")
        self._await(0, False, following)
        self._await(1, False, now)
        self._bind(after)
        self._begin(0, following)
        self._bind(k)
        self._begin(1, now)
        self._bind(after)
        self._settle(parts.first, left=len(products(parts.second)))
        self._leave(0, following)
        self._all(parts.beside)
        self._settle(parts.second)
        self._leave(1, now)
        self._all(parts.late)

    def _begin(self, ring: int, step: str) -> None:
        """A product, under way from here on."""
        product = (self.parts.first, self.parts.second)[ring]
        starts = any(isinstance(t, Tile) and not t.srcs for _, t in statements(product))
        tiles = products(product)

        def begun(s: Stmt) -> Stmt | None:
            if not isinstance(s, Tile):
                return None
            if not s.srcs:
                return seq()
            return replace(s, intrinsic=begun_name(s.intrinsic, starts and s is tiles[0]))

        with self.fn.scope():
            self._room(ring, step)
            self.em.emit(rewrite_stmts(product, begun))
