"""Software pipelining: copies to shared memory run several k-tiles ahead of their readers.

    for k in serial(n)                      T gets three stages
        {pipeline_stages=3} {               for s in serial(2) {
      barrier                                 if s < n { copy k-tile s }; cp_async_commit
      copy k-tile k to T                    }
      barrier                       →       for k in serial(n) {
      multiply from T                         cp_async_wait 1
    }                                         barrier
                                              if k + 2 < n { copy k-tile k + 2 }
                                              cp_async_commit
                                              multiply from T, stage k % 3
                                            }

One barrier for each k-tile is enough: behind it the copies of this k-tile are complete, and all
threads are done with the stage of the one before, which the new copy takes. Copies of 4 to 16 bytes
become `cp.async`, without a branch where they are masked; tiles of a matrix become TMA copies,
counted by an mbarrier for each stage.

A machine without `cp.async` has two stages: a thread loads the next k-tile to registers,
multiplies, and stores to shared memory what has come (`register_staging.py`). What does not fit its
registers is stored as it comes, before the products.

Asynchronous mma instructions (wgmma) stay in flight: each k-tile waits for those of the one before,
and its stage is free one barrier later. Threads issue their copies between the instructions of a
k-tile and that wait: addresses are computed while two products run, and copies have that much
longer to come. TMA, which takes the stage at once, copies behind the wait and a barrier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tilewright.arith.expr import TRUE, Binary, Expr, Load, Select, Var, const
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.vector import Ramp
from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.finalize.gpu.register_staging import stage_in_registers, words_of_thread
from tilewright.finalize.gpu.select_stage import (
    counted_by,
    is_tma_load,
    one_element,
    select_stage,
)
from tilewright.finalize.gpu.tma_pipeline import mbarrier_buffer, start_mbarriers
from tilewright.ir.loop.annotations import ALIGNED, PIPELINE_STAGES, ROLLED, WARP_SPECIALIZED
from tilewright.ir.loop.nodes import (
    Alloc,
    Barrier,
    Buffer,
    CpAsyncCommit,
    CpAsyncWait,
    For,
    Func,
    If,
    MbarrierWait,
    Region,
    Seq,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.rename import rename_loops
from tilewright.ir.loop.walk import (
    map_stmt,
    rewrite_stmts,
    seq,
    statements_in,
    substitute_stmt,
)
from tilewright.schedule.intrin.nvidia.cp_async import CP_ASYNC, CP_ASYNC_PADDED
from tilewright.schedule.intrin.nvidia.wgmma import async_name, issue_name
from tilewright.schedule.intrin.table import INTRINSICS

# The stages of a pipeline whose copies pass through registers.
REGISTER_STAGES = 2
# Registers of a thread for operands of instructions, addresses and masks.
WORKING_REGISTERS = 64


def software_pipeline(func: Func, registers: int = 255, cp_async: bool = True) -> Func:
    """`func`, with its barriers, with its multistage loops.

    `registers` are those of a thread; `cp_async`: the machine has that.
    """
    known = {p.name for p in func.params} if ALIGNED.is_on(func) else set()

    def rewritten(stmt: Stmt, held: int = 0) -> Stmt:
        if isinstance(stmt, For) and _is_pipelined(stmt):
            free = None if cp_async else registers - WORKING_REGISTERS - held
            return _Pipeline(stmt, known, free).result(2 * held > registers)
        held += words_of_thread(stmt.buffer) if isinstance(stmt, Alloc) else 0
        return map_stmt(stmt, lambda s: rewritten(s, held))

    return replace(func, body=rewritten(func.body))


def _is_pipelined(loop: For) -> bool:
    """Whether a loop has stages that the threads which compute fill."""
    return PIPELINE_STAGES.is_on(loop) and not WARP_SPECIALIZED.is_on(loop)


class _Pipeline:
    """One loop: its shared buffers, the copies to them and their readers.

    `free` are the registers of a thread that it may use where there is no `cp.async`.
    """

    def __init__(self, loop: For, aligned: set[str], free: int | None) -> None:
        self.loop = loop
        self.free = free
        self.stages = PIPELINE_STAGES.of(loop) if free is None else REGISTER_STAGES
        self.aligned = aligned
        self.buffers: dict[str, Buffer] = {}
        body, private = loop.body, []
        while isinstance(body, Alloc):
            if body.buffer.scope == "shared":
                self.buffers[body.buffer.name] = body.buffer
            else:
                private.append(body.buffer)  # used within one k-tile
            body = body.body
        parts = list(body.stmts) if isinstance(body, Seq) else [body]
        parts = parts[1:] if isinstance(parts[0], Barrier) else parts
        if not any(isinstance(s, Barrier) for s in parts):
            raise CodegenError("gpu.pipeline", f"loop {loop.name} does not copy what it reads")
        middle = next(n for n, s in enumerate(parts) if isinstance(s, Barrier))
        self.copies = seq(*parts[:middle])
        self.rest = seq(*parts[middle + 1 :])
        leaves = [s for s in statements_in(self.copies) if not isinstance(s, For | Seq)]
        self.tma = [s for s in leaves if is_tma_load(s)]
        if self.tma and (len(self.tma) < len(leaves) or not aligned):
            raise CodegenError("gpu.pipeline", f"loop {loop.name} mixes TMA with other copies")
        self.mbarriers = mbarrier_buffer(f"{loop.name}.mbarriers", self.stages)
        for b in reversed(private):
            self.rest = Alloc(b, self.rest)

    def result(self, crowded: bool) -> Stmt:
        """The prologue of copies, and the loop.

        It is `crowded` where accumulators take half of a thread's registers.
        """
        product = self._async_product()
        wait = () if product is None else (product.wait(),)
        if self.tma:
            begin, body = self._tma_stages(self.rest if product is None else product.waiting())
        elif self.free is not None:
            begin, body = self._register_stages(self.rest, self.free)
        elif product is not None:
            begin, body = self._cp_async_stages(product.issued(), product.wait(pending=1))
        else:
            begin, body = self._cp_async_stages(self.rest, None)
        notes = tuple(n for n in self.loop.annotations if n[0] != PIPELINE_STAGES.key)
        if crowded and self._multiplies_by_warps():
            notes = (*notes, ROLLED.note())
        loop = For(self.loop.name, self.loop.extent, self.loop.kind, body, notes)
        made = seq(begin, loop, *wait)
        for b in reversed(self.buffers.values()):
            size = simplify(b.shape[0] * self.stages)
            made = Alloc(replace(b, shape=(size,)), made)
        return Alloc(self.mbarriers, made) if self.tma else made

    def _cp_async_stages(self, rest: Stmt, wait: Stmt | None) -> tuple[Stmt, Stmt]:
        """The prologue and the body of the loop, with cp.async; `wait` for the k-tile before."""
        step = Var(self.loop.name)
        ahead = self.stages - (1 if wait is None else 2)
        first = f"{self.loop.name}.prologue"
        begin = For(first, const(ahead), "serial", seq(self._copy(Var(first)), CpAsyncCommit()))
        copies = seq(self._copy(simplify(step + ahead)), CpAsyncCommit())
        staged = self._staged(rest, step)
        parts = (copies, staged) if wait is None else (staged, copies, wait)
        return begin, seq(CpAsyncWait(ahead - 1), Barrier(), *parts)

    def _register_stages(self, rest: Stmt, free: int) -> tuple[Stmt, Stmt]:
        """The prologue and the body of the loop, with copies through registers."""
        step, first = Var(self.loop.name), Var(f"{self.loop.name}.prologue")
        following = simplify(step + 1)
        begin = For(first.name, const(1), "serial", self._ahead(self.copies, first))
        halves = stage_in_registers(self.copies, self.buffers, f"{self.loop.name}.ahead")
        inside = (words_of_thread(s.buffer) for s in statements_in(rest) if isinstance(s, Alloc))
        if halves.loads is None or halves.words > free - max(inside, default=0):
            copies = self._ahead(self.copies, following)
            return begin, seq(Barrier(), copies, self._staged(rest, step))
        stores = rename_loops(halves.stores, "store")
        body = seq(
            self._ahead(halves.loads, following),
            self._staged(rest, step),
            self._ahead(stores, following),
        )
        for b in halves.registers:
            body = Alloc(b, body)
        return begin, seq(Barrier(), body)

    def _tma_stages(self, rest: Stmt) -> tuple[Stmt, Stmt]:
        """The prologue and the body of the loop, with TMA and an mbarrier for each stage."""
        step, ahead = Var(self.loop.name), self.stages - 1
        first = f"{self.loop.name}.prologue"
        begin = seq(
            start_mbarriers(self.mbarriers.name, self.stages, len(self.tma)),
            Barrier(),
            For(first, const(ahead), "serial", self._copy(Var(first))),
        )
        here = one_element(self.mbarriers.name, step % self.stages)
        body = seq(
            MbarrierWait(here, step // self.stages % 2),
            self._staged(rest, step),
            Barrier(),
            self._copy(simplify(step + ahead)),
        )
        return begin, body

    def _multiplies_by_warps(self) -> bool:
        """Whether single warps multiply, whose operands are registers (`mma.sync`)."""
        tiles = (s for s in statements_in(self.rest) if isinstance(s, Tile))
        rows = [INTRINSICS[s.intrinsic] for s in tiles if s.intrinsic]
        return any(row.tile.startswith("mma") and not row.async_proxy for row in rows)

    def _async_product(self) -> AsyncProduct | None:
        """The readers, where they are asynchronous mma instructions and nothing else.

        That takes one more stage.
        """
        leaves = [s for s in statements_in(self.rest) if not isinstance(s, For | Seq)]
        tiles = [s.intrinsic for s in leaves if isinstance(s, Tile)]
        known = any(INTRINSICS[name].async_variant for name in tiles)
        return AsyncProduct(self.rest) if self.stages > 2 and len(leaves) == 1 and known else None

    def _copy(self, step: Expr) -> Stmt:
        """The copies for a k-tile, if there is one."""
        return self._ahead(self._cp_async(self.copies), step)

    def _ahead(self, copies: Stmt, step: Expr) -> Stmt:
        """Copies in the stage of a k-tile, if there is one."""
        name = self.loop.name
        copies = self._staged(copies, Var(name))
        copies = rename_loops(copies, "prologue") if isinstance(step, Var) else copies
        return If(step < self.loop.extent, substitute_stmt(copies, {name: step}))

    def _staged(self, stmt: Stmt, step: Expr) -> Stmt:
        """A statement with its accesses in the stage of a k-tile."""
        stage = step % self.stages
        sizes = {b.name: b.shape[0] for b in self.buffers.values()}
        counted = counted_by(stmt, one_element(self.mbarriers.name, stage)) if self.tma else stmt
        return select_stage(counted, sizes, stage)

    def _cp_async(self, stmt: Stmt) -> Stmt:
        """Copies of 4, 8 or 16 bytes as cp.async."""
        stmt = map_stmt(stmt, self._cp_async)
        if not isinstance(stmt, Store) or stmt.mask is not None or stmt.buffer not in self.buffers:
            return stmt
        (to,), value = stmt.indices, stmt.value
        if not isinstance(value, Load):
            return stmt
        (origin,), width = value.indices, value.dtype.bytes * value.lanes
        mask = TRUE if value.mask is None else one_for_all(value.mask)
        known = value.lanes == 1 or value.buffer in self.aligned
        if width not in CP_ASYNC or not known or mask is None:
            return stmt
        here, there = _vector(stmt.buffer, to), _vector(value.buffer, origin)
        if here is None or there is None:
            return stmt
        if mask is TRUE:
            return Tile("copy", here, (there,), CP_ASYNC[width])
        ((start, _),) = there.ranges
        inside = Region(there.buffer, ((start, Select(mask, const(value.lanes), const(0))),))
        return Tile("copy.padded", here, (inside,), CP_ASYNC_PADDED[width])


@node
class AsyncProduct:
    """The products of a k-tile, by one asynchronous instruction (wgmma) for each warp."""

    product: Stmt

    def waiting(self) -> Stmt:
        """They stay in flight, and wait for those of the k-tile before."""
        return self._as(lambda s: replace(s, intrinsic=async_name(s.intrinsic)))

    def issued(self) -> Stmt:
        """They stay in flight, and wait for nothing."""
        return self._as(lambda s: replace(s, intrinsic=issue_name(s.intrinsic, zero=False)))

    def wait(self, pending: int = 0) -> Stmt:
        """The wait for all but so many k-tiles."""

        def made(s: Tile) -> Tile:
            name = INTRINSICS[s.intrinsic].wait + (f"_{pending}" if pending else "")
            return Tile("copy", s.dst, (s.dst,), name)

        return rename_loops(self._as(made), "pending" if pending else "wait")

    def _as(self, made: Callable[[Tile], Tile]) -> Stmt:
        return rewrite_stmts(self.product, lambda s: made(s) if isinstance(s, Tile) else None)


def _vector(buffer: str, index: Expr) -> Region | None:
    """The start of an aligned vector, or one element."""
    if index.lanes == 1:
        return Region(buffer, ((index, const(1)),))
    if not isinstance(index, Ramp) or index.stride != 1 or not _multiple(index.base, index.count):
        return None
    return Region(buffer, ((index.base, const(1)),))


def _multiple(e: Expr, of: int) -> bool:
    if isinstance(e, Binary) and e.op == "xor":
        return _multiple(e.a, of) and _multiple(e.b, of)
    return prove((e % of).eq(0))


def one_for_all(mask: Expr) -> Expr | None:
    """A mask of lanes as one condition for all of them, `None` if they may differ."""
    if mask.lanes == 1:
        return mask
    match mask:
        case Binary("and", a, b):
            both = one_for_all(a), one_for_all(b)
            return None if both[0] is None or both[1] is None else both[0] & both[1]
        case Binary("lt", a, b) if b.lanes == 1 and (first := _base(a)) is not None:
            whole = _multiple(first, a.lanes) and _multiple(b, a.lanes)
            return first < b if whole else None
    return None


def _base(e: Expr) -> Expr | None:
    """The first of consecutive indices."""
    match e:
        case Ramp(base, 1):
            return base
        case Binary("add", a, b):
            one, other = (a, b) if a.lanes > 1 else (b, a)
            found = None if other.lanes > 1 else _base(one)
            return None if found is None else simplify(found + other)
    return None
