"""The frame of a warp-specialized kernel: mbarriers, roles, and their loops over output tiles.

for block in grid(132) {
  alloc K: f16[2 * size] @shared; alloc K.full: i64[2] @shared; ...
  mbarrier_init ...
  barrier
  roles {
    consumer warps(8) registers(240) { ... }
    producer warps(4) registers(24) { for one in thread(1) { ... } }
  }
}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tilewright.arith.expr import Expr, Var, const, minimum, select
from tilewright.arith.simplify import simplify
from tilewright.finalize.gpu.tma_pipeline import TmaPipeline
from tilewright.ir.loop.annotations import MIN_BLOCKS_PER_SM, PERSISTENT
from tilewright.ir.loop.nodes import (
    Alloc,
    Barrier,
    Buffer,
    For,
    Let,
    Role,
    Roles,
    Stmt,
)
from tilewright.ir.loop.thread_mapping import GRID, THREAD, WARP_SIZE
from tilewright.ir.loop.walk import rewrite_stmts, seq, statements_in
from tilewright.schedule.intrin.nvidia.wgmma import WARPGROUP_WARPS
from tilewright.target.gpu import GpuTarget

# `setmaxnreg` moves registers between warpgroups, in such units, up to such a number.
REGISTER_UNIT, MAX_REGISTERS = 8, 248
PRODUCER_WARPS = WARPGROUP_WARPS
# What a thread that only issues copies needs.
PRODUCER_REGISTERS = 24


def block_of(grid: For) -> Var:
    """The index of a persistent block; the grid loop's own variable is that of the tile."""
    return Var(f"{grid.name}.block")


def persistent_blocks(grid: For) -> Expr:
    """How many blocks loop over the tiles."""
    return simplify(minimum(grid.extent, const(PERSISTENT.of(grid))))


def specialized_kernel(
    grid: For,
    blocks: Expr,
    pipelines: Iterable[TmaPipeline],
    mbarriers: Iterable[Buffer],
    start: Iterable[Stmt],
    roles: tuple[Role, Role],
) -> For:
    """The grid loop over persistent blocks."""
    body = seq(*start, Barrier(), Roles(roles))
    found = tuple(pipelines)
    shared = [b for p in found for b in p.all_stages()]
    shared += [b for p in found for b in p.mbarriers()]
    for b in reversed((*shared, *mbarriers)):
        body = Alloc(b, body)
    kept = tuple(n for n in grid.annotations if n[0] == MIN_BLOCKS_PER_SM.key)
    return For(block_of(grid).name, blocks, GRID, body, kept)


def consumer(warps: int, body: Stmt, target: GpuTarget, producer_registers: int) -> Role:
    """The warps that compute: they get all registers that the producers leave."""
    groups = warps // WARPGROUP_WARPS
    threads = WARPGROUP_WARPS * WARP_SIZE
    each = target.registers_per_sm // (threads * (groups + 1)) // REGISTER_UNIT * REGISTER_UNIT
    left = (each * (groups + 1) - producer_registers) // groups
    registers = min(MAX_REGISTERS, left // REGISTER_UNIT * REGISTER_UNIT)
    return Role("consumer", warps, registers, body)


def producer(grid: For, body: Stmt, registers: int = PRODUCER_REGISTERS) -> Role:
    """The warpgroup of whose threads one issues copies."""
    one = For(f"{grid.name}.producer", const(1), THREAD, body)
    return Role("producer", PRODUCER_WARPS, registers, one)


def tile_loop(grid: For, name: str, first: Expr, step: Expr, body: Callable[[Var], Stmt]) -> Stmt:
    """Tiles `first`, `first + step` and so on; `body` gets the number of those before."""
    turn = Var(f"{name}.turn")
    count = (grid.extent - first + step - 1) // step
    return For(turn.name, simplify(count), "serial", Let(name, first + turn * step, body(turn)))


def balanced_tile_loop(grid: For, name: str, blocks: Expr, body: Callable[[Var], Stmt]) -> Stmt:
    """Tiles that take less and less time: in turn from the first block on and from the last.

    So a block with a long tile of one turn has a short one of the next.
    """
    turn, block = Var(f"{name}.turn"), block_of(grid)
    place = select((turn % 2).eq(0), block, blocks - 1 - block)
    whole = grid.extent // blocks
    last = select((whole % 2).eq(0), block, blocks - 1 - block)
    count = whole + select(last < grid.extent % blocks, const(1), const(0))
    return For(turn.name, simplify(count), "serial", Let(name, turn * blocks + place, body(turn)))


def with_private_buffers(grid: For, body: Stmt) -> Stmt:
    """`body` with the buffers in registers that are allocated anywhere in a grid loop."""
    allocs = [s.buffer for s in statements_in(grid.body) if isinstance(s, Alloc)]
    for b in reversed([b for b in allocs if b.scope != "shared"]):
        body = Alloc(b, body)
    return body


def without_allocs(stmt: Stmt) -> Stmt:
    """A statement whose buffers are allocated around it."""
    return rewrite_stmts(stmt, lambda s: s.body if isinstance(s, Alloc) else None)
