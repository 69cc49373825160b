"""The workspace of stream-K: partial tiles of accumulators, and flags that say they are complete.

                                              alloc b.partials: f32[132, 4, 16, 64]
                                              alloc b.flags: i32[132, 4]
                                              for b.reset in grid(4) {
                                                for b.of in thread(132) { b.flags[...] = 0 }
    for b in grid(80) {stream_k=132} {        }
      alloc C: f32[16, 64] @fragment          for b in grid(80) {stream_k=132} {
      for k in serial(48) { C += A * B } →      alloc C: f32[16, 64] @fragment
      ...                                       for k in serial(48) { C += A * B }
    }                                           ...
                                              }

Each block may store one partial tile, with a flag for each of its warps. The loop keeps its
sequential meaning; `stream_k_gemm.py` adds the stores and the fix-up.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Var, as_int, const
from tilewright.core.dtypes import I32
from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.finalize.gpu.mainloop import mainloop_of
from tilewright.ir.loop.annotations import STREAM_K
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Stmt, Store, Tile
from tilewright.ir.loop.thread_mapping import FRAGMENT, GRID, THREAD, WARP_SIZE, threads_of
from tilewright.ir.loop.walk import loops, rewrite_stmts, seq, statements_in


@node
class StreamK:
    """The k-tiles of all output tiles in one row, cut into equal runs, one for each block."""

    tiles: int
    k_tiles: int
    k_tiles_per_block: int

    @property
    def total(self) -> int:
        """The k-tiles of all output tiles."""
        return self.tiles * self.k_tiles

    @property
    def blocks(self) -> int:
        """The number of blocks; the last one may have fewer k-tiles."""
        return -(-self.total // self.k_tiles_per_block)


def stream_k_of(grid: For) -> StreamK | None:
    """The stream-K decomposition of a grid loop, `None` where blocks have whole tiles."""
    blocks, mainloop = STREAM_K.of(grid), mainloop_of(grid)
    if not blocks or mainloop is None:
        return None
    tiles, k_tiles = as_int(grid.extent), as_int(mainloop.extent)
    if not tiles or not k_tiles:
        message = f"loop {grid.name} has no constant number of k-tiles"
        raise CodegenError("gpu.stream-k", message)
    return StreamK(tiles, k_tiles, -(-tiles * k_tiles // blocks))


def partials_name(grid: str) -> str:
    """The buffer of partial tiles."""
    return f"{grid}.partials"


def flags_name(grid: str) -> str:
    """The buffer of flags: whether a partial tile is complete."""
    return f"{grid}.flags"


def stream_k(func: Func) -> Func:
    """`func` with the workspace of its stream-K loops."""
    for loop in loops(func.body):
        plan = stream_k_of(loop) if loop.kind == GRID else None
        if plan is not None:
            func = _with_workspace(func, loop, plan)
    return func


def _with_workspace(func: Func, grid: For, plan: StreamK) -> Func:
    accumulators = _accumulators(grid)
    warps = (const(plan.blocks), const(threads_of(grid.body) // WARP_SIZE))
    shape = (*warps, *accumulators.shape)
    partials = Buffer(partials_name(grid.name), accumulators.dtype, shape)
    flags = Buffer(flags_name(grid.name), I32, warps)

    def rewritten(s: Stmt) -> Stmt | None:
        return seq(_reset(grid.name, flags), s) if s is grid else None

    body = rewrite_stmts(func.body, rewritten)
    return replace(func, body=Alloc(partials, Alloc(flags, body)))


def _accumulators(grid: For) -> Buffer:
    """The fragment of a warp that the mainloop accumulates in."""
    mainloop = mainloop_of(grid)
    assert mainloop is not None
    written = {s.dst.buffer for s in statements_in(mainloop) if isinstance(s, Tile)}
    allocs = (s.buffer for s in statements_in(grid) if isinstance(s, Alloc))
    (accumulators,) = (b for b in allocs if b.scope == FRAGMENT and b.name in written)
    return accumulators


def _reset(grid: str, flags: Buffer) -> Stmt:
    """A launch that clears the flags."""
    blocks, warps = flags.shape
    of, warp = f"{grid}.of", f"{grid}.reset"
    clear = Store(flags.name, (Var(of), Var(warp)), const(0, I32))
    return For(warp, warps, GRID, For(of, blocks, THREAD, clear))
