"""Warp-specialized attention: softmax overlaps with both products, as in FlashAttention-3.

    for k in serial(n)                          producer: copy K and V of each k-tile
        {pipeline_stages=2,                     consumers:
         warp_specialized=1} {                    S = Q * K, softmax of k-tile 0
      copy k-tile k to K, V                       for k in serial(n - 1) {
      S = Q * K                          →          issue S = Q * K of k-tile k + 1
      softmax of S                                  issue O += P * V of k-tile k
      O += P * V                                    wait for S; softmax of k-tile k + 1
    }                                               wait for O; rescale O, convert P
                                                  }
                                                  O += P * V of the last k-tile

`warp_specialized.py` has what all such kernels share.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.codegen.gpu.block_emitter import BlockEmitter
from tilewright.codegen.gpu.mainloop import attention_mainloop, products
from tilewright.codegen.gpu.warp_specialized import WarpSpecializedKernel
from tilewright.ir.loop.nodes import Stmt, Tile
from tilewright.ir.loop.walk import rewrite_stmts, seq, statements_in
from tilewright.schedule.intrin.nvidia.wgmma import issue_name


class FlashAttention(WarpSpecializedKernel):
    """Emits attention: the mainloop has two products."""

    def __init__(self, emitter: BlockEmitter) -> None:
        self.parts = attention_mainloop(emitter.launch.body)
        super().__init__(emitter, self.parts.k_loop, self.parts.pipelines)

    def _producer(self) -> None:
        """The k-tiles of all tiles; K runs one k-tile ahead of V."""
        self.em.single_thread = True
        tiles, k_tiles = self._counter(), self._counter()
        with self._tile_loop() as count:
            for pipeline in range(2, len(self.parts.pipelines)):
                self._copy(pipeline, "0", self._value(tiles))
            self._copy(0, "0", self._value(k_tiles))
            with self.fn.for_range("0", count) as k:
                now, following = self._value(k_tiles), self._next(k_tiles)
                after = self.fn.let(f"add i64 {k}, 1")
                with self._if(f"icmp slt i64 {after}, {count}"):
                    self._copy(0, after, following)
                self._copy(1, k, now)
            self._next(tiles)
        self.ex.pointers.update(self.bases)
        self.em.single_thread = False

    def _consumer(self) -> None:
        parts = self.parts
        loaded_once = range(2, len(self.parts.pipelines))
        tiles, k_tiles = self._counter(), self._counter()
        with self._tile_loop() as count:
            self._all(parts.prologue)
            now, tile = self._value(k_tiles), self._value(tiles)
            self._bind("0")
            for pipeline in loaded_once:
                self._wait_stage(pipeline, False, tile)
                self._select_stage(pipeline, tile)
            self._wait_stage(0, False, now)
            self._issue(0, now)
            self._wgmma_wait(parts.qk)
            self._release_stage(0, now)
            self._all((*parts.softmax, *parts.rescale))
            last = self.fn.let(f"add i64 {count}, -1")
            with self.fn.for_range("0", last) as k:
                self._step(k, self._value(k_tiles), self._next(k_tiles))
            for pipeline in loaded_once:
                self._release_stage(pipeline, tile)
            now = self._value(k_tiles)
            self._bind(last)
            self._wait_stage(1, False, now)
            self._issue(1, now)
            self._wgmma_wait(parts.pv)
            self._release_stage(1, now)
            self._next(k_tiles)
            self._next(tiles)
            self._all(parts.epilogue)

    def _step(self, k: str, now: str, following: str) -> None:
        """Q * K of the next k-tile and P * V of this one, with softmax between their waits."""
        parts = self.parts
        after = self.fn.let(f"add i64 {k}, 1")
        self._wait_stage(0, False, following)
        self._wait_stage(1, False, now)
        self._bind(after)
        self._issue(0, following)
        self._bind(k)
        self._issue(1, now)
        self._bind(after)
        self._wgmma_wait(parts.qk, pending=len(products(parts.pv)))
        self._release_stage(0, following)
        self._all(parts.softmax)
        self._wgmma_wait(parts.pv)
        self._release_stage(1, now)
        self._all(parts.rescale)

    def _issue(self, pipeline: int, k_tile: str) -> None:
        """Start a product; it is in flight from here on."""
        product = (self.parts.qk, self.parts.pv)[pipeline]
        starts = any(isinstance(t, Tile) and not t.srcs for t in statements_in(product))
        tiles = products(product)

        def begun(s: Stmt) -> Stmt | None:
            if not isinstance(s, Tile):
                return None
            if not s.srcs:
                return seq()
            return replace(s, intrinsic=issue_name(s.intrinsic, starts and s is tiles[0]))

        with self.fn.scope():
            self._select_stage(pipeline, k_tile)
            self.em.emit(rewrite_stmts(product, begun))
