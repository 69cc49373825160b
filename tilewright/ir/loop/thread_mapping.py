"""Thread mapping: which thread of a block runs which iteration of its thread loops.

    for y in thread(16) {            thread = y * 16 + x
      for x in thread(16) { A }
    }
    for z in thread(64) { B }        thread = z, those from 64 on do nothing
    for w in warp(8) { C }           thread // 32 = w, a whole warp for each iteration
    for t in serial(9) {             nine launches, one after another
      for b in grid(64) { D }
    }
    for t in serial(9) {grid_sync=1} {
      for b in grid(64) { E }        one cooperative launch: 64 blocks, a grid barrier each step
    }

    for z in allreduce(64) { S }     thread = z: every thread gets the sum that S computes
    for z in allreduce(64) {         and each keeps what the threads before it add up to (a scan)
      before[z] = s; s += part[z]
    }
    roles {                          threads of the roles one after another; within each
      consumer warps(8) { ... }      role, and within each of its groups, they count from 0
      producer warps(4) { ... }
    }

A block has as many threads as its longest nest of thread loops has iterations, or as its roles have
warps. A buffer in
registers or on the stack that is allocated outside of thread loops is private to a thread: every
thread has its own, which keeps its contents from one nest to the next. One allocated outside of
the grid loops of a cooperative launch keeps them from step to step as well. A fragment belongs to a
warp and is distributed over its threads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.arith.expr import Expr, Var, as_int
from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.ir.loop.annotations import GRID_SYNC
from tilewright.ir.loop.nodes import Alloc, For, Roles, Stmt
from tilewright.ir.loop.walk import child_stmts, loops

THREAD = "thread"
WARP = "warp"
ALLREDUCE = "allreduce"
# The kinds of loops whose iterations are distributed over the threads of a block.
THREAD_KINDS = (THREAD, WARP, ALLREDUCE)
GRID = "grid"
GROUP = "group"
WARP_SIZE = 32
FRAGMENT = "fragment"
SHARED = "shared"
PRIVATE = ("register", "local", "volatile", FRAGMENT)


@node
class ThreadMapping:
    """How a thread's index gives a loop's variable: `index % modulus // stride`.

    Threads for which that is not less than `extent` have no iteration.
    """

    extent: int
    stride: int
    modulus: int

    def index(self, thread: Expr, threads: int) -> Expr:
        """The loop's variable, from the index of a thread in a block of `threads`."""
        within = thread if self.modulus >= threads else thread % self.modulus
        return within if self.stride == 1 else within // self.stride

    @property
    def active(self) -> int:
        """How many threads, of each `modulus`, have an iteration."""
        return self.extent * self.stride

    @property
    def is_full(self) -> bool:
        """Whether every thread has an iteration."""
        return self.active >= self.modulus


def is_host_loop(stmt: Stmt) -> bool:
    """Whether a statement is a loop of the host, with launches in each iteration."""
    return (
        isinstance(stmt, For)
        and stmt.kind == "serial"
        and any(loop.kind == GRID for loop in loops(stmt.body))
    )


def is_grid_sync(stmt: Stmt) -> bool:
    """Whether a statement is a loop around grid loops that is one cooperative launch."""
    return isinstance(stmt, For) and GRID_SYNC.is_on(stmt)


def threads_of(stmt: Stmt) -> int:
    """How many threads a block needs for a statement."""
    if isinstance(stmt, For) and stmt.kind in THREAD_KINDS:
        return _stride(stmt) * _extent(stmt)
    if isinstance(stmt, Roles):
        return sum(role.warps for role in stmt.roles) * WARP_SIZE
    return max((threads_of(child) for child in child_stmts(stmt)), default=1)


def _stride(loop: For) -> int:
    """How many threads do one iteration."""
    return max(threads_of(loop.body), WARP_SIZE if loop.kind == WARP else 1)


def thread_mappings(stmt: Stmt, threads: int) -> dict[str, ThreadMapping]:
    """The mapping of each thread loop in a statement, for a block of `threads`."""
    return dict(_mappings(stmt, threads))


def _mappings(stmt: Stmt, modulus: int) -> Iterator[tuple[str, ThreadMapping]]:
    if isinstance(stmt, For) and stmt.kind in THREAD_KINDS:
        stride = _stride(stmt)
        yield stmt.name, ThreadMapping(_extent(stmt), stride, modulus)
        modulus = stride
    if isinstance(stmt, For) and stmt.kind == GROUP:
        modulus //= _extent(stmt)
    if isinstance(stmt, Roles):
        for role in stmt.roles:
            yield from _mappings(role.body, role.warps * WARP_SIZE)
        return
    for child in child_stmts(stmt):
        yield from _mappings(child, modulus)


def _extent(loop: For) -> int:
    extent = as_int(loop.extent)
    if extent is None:
        raise CodegenError(
            "threads.extent", f"the extent {loop.extent} of thread loop {loop.name} is not constant"
        )
    return extent


def thread_values(found: Mapping[str, ThreadMapping], threads: int) -> dict[str, Expr]:
    """Each loop's variable as an expression of the thread's index, called `thread`."""
    thread = Var(THREAD)
    return {name: mapping.index(thread, threads) for name, mapping in found.items()}


def private_buffers(stmt: Stmt) -> set[str]:
    """The buffers of which every thread has its own."""
    if isinstance(stmt, For) and stmt.kind in THREAD_KINDS:
        return set()
    own = {stmt.buffer.name} if isinstance(stmt, Alloc) and stmt.buffer.scope in PRIVATE else set()
    return own.union(*map(private_buffers, child_stmts(stmt)))
