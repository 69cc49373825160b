"""Attention whose softmax overlaps with both products, as in FlashAttention-3.

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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tilewright.arith.expr import Expr, Var, as_int, const
from tilewright.arith.walk import free_vars, substitute
from tilewright.finalize.gpu.mainloop import (
    AttentionMainloop,
    attention_mainloop,
    pipeline_of,
    products,
)
from tilewright.finalize.gpu.persistent_gemm import wait_for_product
from tilewright.finalize.gpu.roles import (
    balanced_tile_loop,
    block_of,
    consumer,
    persistent_blocks,
    producer,
    specialized_kernel,
    tile_loop,
    with_private_buffers,
)
from tilewright.finalize.gpu.tma_pipeline import Counter, TmaPipeline
from tilewright.ir.loop.nodes import For, If, Let, Seq, Stmt, Tile
from tilewright.ir.loop.rename import rename_loops
from tilewright.ir.loop.thread_mapping import WARP_SIZE, threads_of
from tilewright.ir.loop.walk import rewrite_stmts, seq, statements_in, substitute_stmt
from tilewright.schedule.intrin.nvidia.wgmma import issue_name
from tilewright.target.gpu import GpuTarget

# Room for the mbarriers of all rings.
MBARRIER_BYTES = 1024


def overlapped_attention(grid: For, target: GpuTarget) -> For:
    """The roles of a loop over tiles of queries."""
    parts = attention_mainloop(grid.body)
    pipelines = _pipelines(grid, parts, target)
    blocks, warps = persistent_blocks(grid), threads_of(grid.body) // WARP_SIZE
    made = producer(grid, _produce(grid, parts, pipelines, blocks))
    body = _Consumer(grid, parts, pipelines).tiles(blocks)
    return specialized_kernel(
        grid,
        blocks,
        pipelines,
        (),
        [s for p in pipelines for s in p.start(warps)],
        (consumer(warps, body, target, made.registers), made),
    )


def _pipelines(grid: For, parts: AttentionMainloop, target: GpuTarget) -> list[TmaPipeline]:
    """The rings; queries of the next tile are loaded during this one if there is room for both."""
    keys, values, *once = (pipeline_of(grid, parts.k_loop, p) for p in parts.pipelines)
    rings = [b for p in (keys, values, *once) for b in p.all_stages()]
    taken = sum(b.dtype.bytes * (as_int(b.shape[0]) or 0) for b in rings)
    if taken + MBARRIER_BYTES > target.max_shared_per_block:
        once = [replace(p, stages=1) for p in once]
    return [keys, values, *once]


def _produce(
    grid: For, parts: AttentionMainloop, pipelines: Sequence[TmaPipeline], blocks: Expr
) -> Stmt:
    """The k-tiles of all tiles; K runs one k-tile ahead of V."""
    keys, values, *loaded_once = pipelines
    count, tile, loop = Counter(f"{grid.name}.produced"), f"{grid.name}.next", parts.k_loop
    k = Var(f"{loop.name}.next")

    def copies(turn: Var) -> Stmt:
        here = {grid.name: Var(tile)}
        extent = substitute(loop.extent, here)
        after = k + 1
        ahead = keys.copy(count.plus(after), {**here, loop.name: after})
        each = seq(If(after < extent, ahead), values.copy(count.plus(k), {**here, loop.name: k}))
        return seq(
            *(p.copy(turn, here) for p in loaded_once),
            keys.copy(count.plus(const(0)), {**here, loop.name: const(0)}),
            For(k.name, extent, "serial", each),
            count.advance(extent),
        )

    return count.around(const(0), _tiles(grid, loop, tile, blocks, copies))


def _tiles(grid: For, loop: For, name: str, blocks: Expr, body: Callable[[Var], Stmt]) -> Stmt:
    """The loop over the tiles of a block; those under a band differ, the longest come first."""
    if free_vars(loop.extent):
        return balanced_tile_loop(grid, name, blocks, body)
    return tile_loop(grid, name, block_of(grid), blocks, body)


class _Consumer:
    """What the consumer warps do."""

    def __init__(
        self, grid: For, parts: AttentionMainloop, pipelines: Sequence[TmaPipeline]
    ) -> None:
        self.grid, self.parts = grid, parts
        self.keys, self.values, *self.loaded_once = pipelines
        self.count = Counter(f"{grid.name}.consumed")

    def tiles(self, blocks: Expr) -> Stmt:
        """All tiles of a block."""
        grid = self.grid
        tiles = _tiles(grid, self.parts.k_loop, grid.name, blocks, self._tile)
        return self.count.around(const(0), tiles)

    def _tile(self, turn: Var) -> Stmt:
        parts, extent = self.parts, self.parts.k_loop.extent
        steps = seq(
            *parts.prologue,
            *(p.wait_full(turn) for p in self.loaded_once),
            self._first(turn),
            self._mainloop(turn),
            *(p.release(turn) for p in self.loaded_once),
            self._last(),
            self.count.advance(extent),
            *parts.epilogue,
        )
        return with_private_buffers(self.grid, steps)

    def _first(self, turn: Var) -> Stmt:
        """The scores and the softmax of the first k-tile."""
        parts, now = self.parts, Var(f"{self._k}.first")
        body = seq(
            self.keys.wait_full(now),
            self._scores(const(0), now, turn),
            wait_for_product(parts.qk),
            self.keys.release(now),
            *self._at(const(0), (*parts.softmax, *parts.rescale)),
        )
        return Let(now.name, self.count.plus(const(0)), rename_loops(body, "first"))

    def _mainloop(self, turn: Var) -> Stmt:
        """Q * K of the next k-tile and P * V of this one, with softmax between their waits."""
        parts = self.parts
        k, after = Var(self._k), Var(f"{self._k}.after")
        now, following = Var(f"{self._k}.number"), Var(f"{self._k}.following")
        body: Stmt = seq(
            self.keys.wait_full(following),
            self.values.wait_full(now),
            self._scores(after, following, turn),
            self._weighted(k, now),
            wait_for_product(parts.qk, pending=len(products(parts.pv))),
            self.keys.release(following),
            *self._at(after, parts.softmax),
            wait_for_product(parts.pv),
            self.values.release(now),
            *self._at(after, parts.rescale),
        )
        for name, value in (
            (following, self.count.plus(k + 1)),
            (now, self.count.plus(k)),
            (after, k + 1),
        ):
            body = Let(name.name, value, body)
        return For(k.name, parts.k_loop.extent - 1, "serial", body)

    def _last(self) -> Stmt:
        """P * V of the last k-tile."""
        last, now = Var(f"{self._k}.end"), Var(f"{self._k}.last")
        body = seq(
            self.values.wait_full(now),
            self._weighted(last, now),
            wait_for_product(self.parts.pv),
            self.values.release(now),
        )
        named = Let(now.name, self.count.plus(last), rename_loops(body, "last"))
        return Let(last.name, self.parts.k_loop.extent - 1, named)

    @property
    def _k(self) -> str:
        return self.parts.k_loop.name

    def _at(self, k: Expr, stmts: Iterable[Stmt]) -> list[Stmt]:
        """Statements of a k-tile."""
        return [substitute_stmt(s, {self._k: k}) for s in stmts]

    def _scores(self, k: Expr, now: Expr, turn: Var) -> Stmt:
        """Issue Q * K."""
        (issued,) = self._at(k, (_issued(self.parts.qk),))
        for p in self.loaded_once:
            issued = p.in_stage(issued, turn)
        return self.keys.in_stage(issued, now)

    def _weighted(self, k: Expr, now: Expr) -> Stmt:
        """Issue P * V."""
        (issued,) = self._at(k, (_issued(self.parts.pv),))
        return self.values.in_stage(issued, now)


def _issued(product: Stmt) -> Stmt:
    """A product that is in flight from here on."""
    starts = any(isinstance(t, Tile) and not t.srcs for t in statements_in(product))
    tiles = products(product)

    def begun(s: Stmt) -> Stmt | None:
        if isinstance(s, Seq):  # what clears the accumulators is gone
            return seq(*(x for x in s.stmts if x != Seq(())))
        if not isinstance(s, Tile):
            return None
        if not s.srcs:
            return seq()
        return replace(s, intrinsic=issue_name(s.intrinsic, starts and s is tiles[0]))

    return rewrite_stmts(product, begun)
