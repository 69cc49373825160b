"""A persistent GEMM, with one consumer group or ping-pong between several.

    for b in grid(768)                          producer: copy the k-tiles of b, b + 132, ...
        {persistent=132, pingpong=2} {          consumer groups, each for every second b:
      C = 0                                       C = 0; wait for the order mbarrier
      for k in serial(n) {               →        for k in serial(n) {
        copy k-tile k to A and B                    issue C += A * B of k-tile k
        C += A * B                                  wait for k-tile k - 1: release its stage
      }                                           }
      epilogue of C                               arrive at the next group's order mbarrier
    }                                             wait for C; epilogue of C

While one group multiplies, the other runs its epilogue. The k-tiles of all tiles go through one
pipeline in order. An mbarrier has one bit of parity, so a consumer must not be more than one phase
away from the stage it waits for. The order mbarrier guarantees that: a group starts its mainloop
when the group before it has issued its last k-tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.arith.expr import Expr, Select, Var, const
from tilewright.finalize.gpu.mainloop import GemmMainloop, gemm_mainloop, pipeline_of, products
from tilewright.finalize.gpu.roles import (
    block_of,
    consumer,
    persistent_blocks,
    producer,
    specialized_kernel,
    tile_loop,
    with_private_buffers,
)
from tilewright.finalize.gpu.select_stage import one_element
from tilewright.finalize.gpu.tma_pipeline import (
    Counter,
    TmaPipeline,
    mbarrier_buffer,
    start_mbarriers,
)
from tilewright.ir.loop.annotations import PINGPONG
from tilewright.ir.loop.nodes import (
    Buffer,
    For,
    Let,
    MbarrierArrive,
    MbarrierWait,
    Stmt,
    Tile,
)
from tilewright.ir.loop.rename import rename_loops
from tilewright.ir.loop.thread_mapping import GROUP, WARP_SIZE, threads_of
from tilewright.ir.loop.walk import rewrite_stmts, seq, substitute_stmt
from tilewright.schedule.intrin.nvidia.wgmma import async_name, issue_name
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.target.gpu import GpuTarget


def persistent_gemm(grid: For, target: GpuTarget) -> For:
    """The roles of a loop over output tiles."""
    parts = gemm_mainloop(grid.body)
    pipeline = pipeline_of(grid, parts.k_loop, parts.operands)
    groups, warps = PINGPONG.of(grid) or 1, threads_of(grid.body) // WARP_SIZE
    order = Order(f"{grid.name}.order", groups)
    blocks = persistent_blocks(grid)
    made = producer(grid, _produce(grid, parts, pipeline, blocks))
    body = _consume(grid, parts, pipeline, blocks, order)
    return specialized_kernel(
        grid,
        blocks,
        (pipeline,),
        order.mbarriers(),
        (*pipeline.start(warps), *order.start(warps)),
        (consumer(groups * warps, body, target, made.registers), made),
    )


def _produce(grid: For, parts: GemmMainloop, pipeline: TmaPipeline, blocks: Expr) -> Stmt:
    """The k-tiles of all tiles of a block."""
    count, tile = Counter(f"{grid.name}.produced"), f"{grid.name}.next"
    k = Var(f"{parts.k_loop.name}.next")

    def copies(_: Var) -> Stmt:
        extent = parts.k_loop.extent
        step = pipeline.copy(count.plus(k), {grid.name: Var(tile), parts.k_loop.name: k})
        return seq(For(k.name, extent, "serial", step), count.advance(extent))

    return count.around(const(0), tile_loop(grid, tile, block_of(grid), blocks, copies))


def _consume(
    grid: For, parts: GemmMainloop, pipeline: TmaPipeline, blocks: Expr, order: Order
) -> Stmt:
    """Every n-th tile of n groups; the k-tiles of the others are skipped."""
    groups, each = order.groups, parts.k_loop.extent
    group, count = Var(f"{grid.name}.group"), Counter(f"{grid.name}.consumed")

    def tile(turn: Var) -> Stmt:
        steps = seq(
            *parts.prologue,
            *order.wait(group, turn),
            multiply(parts, pipeline, count, const(0), each),
            *order.arrive(group),
            wait_for_product(parts.product),
            pipeline.release(count.plus(each - 1)),
            count.advance(each * groups),
            *parts.epilogue,
        )
        return with_private_buffers(grid, steps)

    first = block_of(grid) + group * blocks
    tiles = tile_loop(grid, grid.name, first, blocks * groups, tile)
    body = count.around(group * each, tiles)
    return For(group.name, const(groups), GROUP, body)


def multiply(
    parts: GemmMainloop, pipeline: TmaPipeline, count: Counter, begin: Expr, end: Expr
) -> Stmt:
    """Issue the product of each k-tile, and release the stage of the one before, if any."""
    loop = parts.k_loop
    step, now = Var(f"{loop.name}.step"), Var(f"{loop.name}.number")
    product = substitute_stmt(in_flight(parts.product), {loop.name: begin + step})
    body = seq(
        pipeline.wait_full(now),
        pipeline.in_stage(product, now),
        pipeline.release(count.plus(step + (pipeline.stages - 1)), step > 0),
    )
    named = Let(now.name, count.plus(step), body)
    return For(step.name, end - begin, "serial", named)


def in_flight(product: Stmt) -> Stmt:
    """A product whose instructions are in flight when the next k-tile's are issued."""
    tiles = products(product)

    def issued(s: Stmt) -> Stmt | None:
        if not isinstance(s, Tile):
            return None
        if s is tiles[-1]:
            return replace(s, intrinsic=async_name(s.intrinsic, len(tiles)))
        return replace(s, intrinsic=issue_name(s.intrinsic, zero=False))

    return rewrite_stmts(product, issued)


def wait_for_product(product: Stmt, pending: int = 0, part: str = "wait") -> Stmt:
    """Wait for the accumulators of a product; `pending` later instructions may be in flight."""
    tile = products(product)[0]
    name = INTRINSICS[tile.intrinsic].wait + (f"_{pending}" if pending else "")
    assert isinstance(product, For)
    waits = replace(product, body=Tile("copy", tile.dst, (tile.dst,), name))
    return rename_loops(waits, part)


@dataclass(frozen=True)
class Order:
    """The order of the groups: an mbarrier each, at which the group before it arrives."""

    name: str
    groups: int

    def mbarriers(self) -> Sequence[Buffer]:
        """Their buffer, where there are several groups."""
        return [mbarrier_buffer(self.name, self.groups)] if self.groups > 1 else []

    def start(self, warps: int) -> Sequence[Stmt]:
        """Their initialization, for groups of so many warps."""
        return [start_mbarriers(b.name, self.groups, warps) for b in self.mbarriers()]

    def wait(self, group: Var, turn: Var) -> Sequence[Stmt]:
        """Wait for the group before; the first group starts with its first tile."""
        parity = (turn + Select(group.eq(const(0)), const(1), const(0))) % 2
        mine = one_element(self.name, group)
        return [MbarrierWait(mine, parity)] if self.groups > 1 else []

    def arrive(self, group: Var) -> Sequence[Stmt]:
        """Let the next group start its mainloop."""
        following = one_element(self.name, (group + 1) % self.groups)
        return [MbarrierArrive(following)] if self.groups > 1 else []
