"""How the iterations of thread loops are numbered: which thread of a block does which.

    for y in thread(16) {            thread = y * 16 + x
      for x in thread(16) { A }
    }
    for z in thread(64) { B }        thread = z, those from 64 on do nothing
    for w in warp(8) { C }           thread // 32 = w, all threads of a warp do the same iteration
    for t in serial(9) {             nine launches, one after another
      for b in grid(64) { D }
    }
    for t in serial(9) {staying=1} {
      for b in grid(64) { E }        one launch: 64 blocks that wait for each other at each step
    }

    for z in combine(64) { S }       thread = z: what is summed in S is had by all of them then

A block has as many threads as its longest nest of thread loops has iterations. A buffer in
registers, or on the stack, that is allocated outside of thread loops belongs to one thread each:
every thread has its own, and finds in it what it has written there in the nest before; outside of
grid loops, too, it does so in each step for which its block stays. A fragment belongs to a warp,
whose threads each have some elements of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tilewright.arith.expr import Expr, Var, as_int
from tilewright.core.errors import CodegenError
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Alloc, For, Stmt
from tilewright.ir.loop.walk import child_stmts, loops

THREAD = "thread"
WARP = "warp"
COMBINE = "combine"
# Loops whose iterations are those of threads.
SPREAD = (THREAD, WARP, COMBINE)
GRID = "grid"
# The note on a grid loop: how many of its blocks a multiprocessor should have room for.
RESIDENT = "resident"
# The note on a grid loop: so many of its blocks run, and go through its iterations in turns.
AT_ONCE = "at_once"
# The note on a grid loop: so many groups of threads of such a block have turns of their own.
GROUPS = "groups"
# The note on a loop of such a block: other threads copy what it reads, so many steps ahead.
APART = "apart"
# The note on a grid loop: its blocks have equal shares of the steps of all iterations, not whole
# iterations, and hand over what they have of sums that others end.
SHARES = "shares"
# The note on a loop over launches: all blocks of threads stay for all of its iterations.
STAYING = "staying"
WARP_SIZE = 32
FRAGMENT = "fragment"
PRIVATE = ("register", "local", "waiting", FRAGMENT)


@node
class Share:
    """The part of the thread's number that is a loop's variable: `number % room // stride`.

    Threads for which that is not less than `extent` have no iteration.
    """

    extent: int
    stride: int
    room: int

    def index(self, thread: Expr, threads: int) -> Expr:
        """The loop's variable, from the number of a thread in a block of so many."""
        within = thread if self.room >= threads else thread % self.room
        return within if self.stride == 1 else within // self.stride

    @property
    def active(self) -> int:
        """How many of the threads in its room have an iteration."""
        return self.extent * self.stride

    @property
    def is_full(self) -> bool:
        """Whether every thread has an iteration."""
        return self.active >= self.room


def is_launched_often(stmt: Stmt) -> bool:
    """Whether a statement is a loop around blocks of threads, launched in each iteration."""
    return (
        isinstance(stmt, For)
        and stmt.kind == "serial"
        and any(loop.kind == GRID for loop in loops(stmt.body))
    )


def is_staying(stmt: Stmt) -> bool:
    """Whether a statement is a loop around blocks of threads that is one launch as a whole."""
    return isinstance(stmt, For) and STAYING in dict(stmt.annotations)


def threads_of(stmt: Stmt) -> int:
    """How many threads a block needs for a statement."""
    if isinstance(stmt, For) and stmt.kind in SPREAD:
        return _stride(stmt) * _extent(stmt)
    return max((threads_of(child) for child in child_stmts(stmt)), default=1)


def _stride(loop: For) -> int:
    """How many threads do one iteration."""
    return max(threads_of(loop.body), WARP_SIZE if loop.kind == WARP else 1)


def shares(stmt: Stmt, threads: int) -> dict[str, Share]:
    """The share of each thread loop in a statement, for a block of `threads`."""
    return dict(_shares(stmt, threads))


def _shares(stmt: Stmt, room: int) -> Iterator[tuple[str, Share]]:
    if isinstance(stmt, For) and stmt.kind in SPREAD:
        stride = _stride(stmt)
        yield stmt.name, Share(_extent(stmt), stride, room)
        room = stride
    for child in child_stmts(stmt):
        yield from _shares(child, room)


def _extent(loop: For) -> int:
    extent = as_int(loop.extent)
    if extent is None:
        raise CodegenError(
            "threads.extent", f"the extent {loop.extent} of thread loop {loop.name} is not constant"
        )
    return extent


def thread_values(found: Mapping[str, Share], threads: int) -> dict[str, Expr]:
    """Each loop's variable as a formula of the thread's number, called `thread`."""
    number = Var(THREAD)
    return {name: share.index(number, threads) for name, share in found.items()}


def private_buffers(stmt: Stmt) -> set[str]:
    """The buffers of which every thread has its own."""
    if isinstance(stmt, For) and stmt.kind in SPREAD:
        return set()
    own = {stmt.buffer.name} if isinstance(stmt, Alloc) and stmt.buffer.scope in PRIVATE else set()
    return own.union(*map(private_buffers, child_stmts(stmt)))
