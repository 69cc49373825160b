"""Room for the sums that blocks of threads hand over, where those have equal shares of all steps.

                                              alloc b.parts: f32[132, 4, 16, 64]
                                              alloc b.ready: i32[132, 4]
                                              for b.reset in grid(4) {
                                                for b.of in thread(132) { b.ready[...] = 0 }
    for b in grid(80) {shares=132} {          }
      alloc C: f32[16, 64] @fragment          for b in grid(80) {shares=132} {
      for k in serial(48) {apart=4} {    →      alloc C: f32[16, 64] @fragment
        C += A * B                              for k in serial(48) {apart=4} {
      }                                           C += A * B
      ...                                       }
    }                                           ...
                                              }

Each block has room for one tile of sums, and each of its warps a place that says whether its part
of that is there. Who writes and reads them, `codegen/gpu/stream_k_gemm.py` says: the loop still
means what it says.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import Var, as_int, const
from tilewright.core.dtypes import I32
from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.finalize.gpu.warp_specialize import walk_of
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Stmt, Store, Tile
from tilewright.ir.loop.thread_mapping import FRAGMENT, GRID, SHARES, THREAD, WARP_SIZE, threads_of
from tilewright.ir.loop.walk import loops, rewrite_stmts, seq, statements


@node
class Shares:
    """Blocks of which each has the same number of steps, in the order of all tiles' steps."""

    tiles: int
    steps: int
    each: int

    @property
    def all(self) -> int:
        """The steps of all tiles."""
        return self.tiles * self.steps

    @property
    def blocks(self) -> int:
        """How many blocks there are; the last one may have fewer steps."""
        return -(-self.all // self.each)


def shares_of(grid: For) -> Shares | None:
    """The shares of the blocks of a grid loop, `None` where they have whole iterations."""
    most, walk = dict(grid.annotations).get(SHARES), walk_of(grid)
    if most is None or walk is None:
        return None
    tiles, steps = as_int(grid.extent), as_int(walk.extent)
    if not tiles or not steps:
        raise CodegenError("gpu.shares", f"the steps of loop {grid.name} are not of a known number")
    return Shares(tiles, steps, -(-tiles * steps // int(most)))


def parts_name(grid: str) -> str:
    """The buffer of sums that are handed over."""
    return f"{grid}.parts"


def ready_name(grid: str) -> str:
    """The buffer of places that say whether they are there."""
    return f"{grid}.ready"


def make_parts(func: Func) -> Func:
    """`func` with room for what is handed over."""
    for loop in loops(func.body):
        shares = shares_of(loop) if loop.kind == GRID else None
        if shares is not None:
            func = _with_parts(func, loop, shares)
    return func


def _with_parts(func: Func, grid: For, shares: Shares) -> Func:
    sums = _sums(grid)
    places = (const(shares.blocks), const(threads_of(grid.body) // WARP_SIZE))
    parts = Buffer(parts_name(grid.name), sums.dtype, (*places, *sums.shape))
    ready = Buffer(ready_name(grid.name), I32, places)

    def rewritten(s: Stmt) -> Stmt | None:
        return seq(_reset(grid.name, ready), s) if s is grid else None

    body = rewrite_stmts(func.body, rewritten)
    return replace(func, body=Alloc(parts, Alloc(ready, body)))


def _sums(grid: For) -> Buffer:
    """What a warp has of the sums of the walk."""
    walk = walk_of(grid)
    assert walk is not None
    written = {s.dst.buffer for _, s in statements(walk) if isinstance(s, Tile)}
    allocs = (s.buffer for _, s in statements(grid) if isinstance(s, Alloc))
    (sums,) = (b for b in allocs if b.scope == FRAGMENT and b.name in written)
    return sums


def _reset(grid: str, ready: Buffer) -> Stmt:
    """Nothing is there."""
    blocks, warps = ready.shape
    of, warp = f"{grid}.of", f"{grid}.reset"
    nothing = Store(ready.name, (Var(of), Var(warp)), const(0, I32))
    return For(warp, warps, GRID, For(of, blocks, THREAD, nothing))
