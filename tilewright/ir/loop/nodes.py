"""Loop nodes: what a kernel does, statement by statement.

    func @mm(A: f32[M, K], B: f32[K, N], C: f32[M, N]) {
      for i in serial(M) {
        for j in serial(N) {
          for k in serial(K) {
            block "C" [vi: S(M) = i, vj: S(N) = j, vk: R(K) = k]
              reads A[vi, vk], B[vk, vj] writes C[vi, vj]
              init { C[vi, vj] = 0.0 }
              { C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj] }
          }
        }
      }
    }

Loops, blocks and buffers are referred to by name, unique within a function. Every loop counts from
0 in steps of 1. A function writes only its parameters marked as outputs and its own allocations.
"""

from __future__ import annotations

from tilewright.arith.expr import TRUE, Expr, Load
from tilewright.core.dtypes import DType
from tilewright.core.errors import NOWHERE, Loc
from tilewright.core.node import node
from tilewright.ir.types import Shape

# serial: in order. parallel: iterations on several threads. unroll: repeated in the code.
# vectorize: all iterations as one vector operation.
# grid: each iteration is a block of threads of a GPU. thread: the iterations are distributed over
# the threads of a block; statements of a grid loop outside of thread loops run on one thread.
# allreduce: a reduction over the threads that have the iterations, from thread to thread; each of
# them gets the result, and may keep what it finds before it adds its own.
# warp: the iterations are distributed over warps, whose threads run the tiles in them together.
# group: the warps of a role are divided into equal groups, each of which runs one iteration as a
# block of its own: its threads are numbered from 0.
LOOP_KINDS = (
    "serial",
    "parallel",
    "unroll",
    "vectorize",
    "grid",
    "group",
    "thread",
    "warp",
    "allreduce",
)
# Loops whose iterations run at once, in no order.
CONCURRENT_KINDS = ("parallel", "vectorize", "grid", "group", "thread", "warp")
# global: planned in the arena or given by the caller. local: on the stack of the running thread.
# register: as local, but every index must become constant so that it lives in registers.
# volatile: as local, with volatile accesses: LLVM must not keep it in registers, which are needed
# for something else meanwhile.
# shared: shared memory of a block of threads.
# fragment: in registers of a warp, distributed as the accumulators of mma instructions are.
SCOPES = ("global", "local", "register", "volatile", "shared", "fragment")

Annotations = tuple[tuple[str, int | str], ...]


@node
class Buffer:
    """A named array with row-major layout."""

    name: str
    dtype: DType
    shape: Shape
    scope: str = "global"

    def __str__(self) -> str:
        scope = "" if self.scope == "global" else f" @{self.scope}"
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]{scope}"


class Stmt:
    """Base of all statements."""

    __slots__ = ()


@node
class Seq(Stmt):
    """Statements in order."""

    stmts: tuple[Stmt, ...]


@node
class For(Stmt):
    """`for name in kind(extent) { body }`."""

    name: str
    extent: Expr
    kind: str
    body: Stmt
    annotations: Annotations = ()


@node
class If(Stmt):
    """`if cond { then } else { orelse }`; a vector condition guards each lane on its own."""

    cond: Expr
    then: Stmt
    orelse: Stmt | None = None


@node
class Store(Stmt):
    """`buffer[indices] = value`; nothing where `mask` is false."""

    buffer: str
    indices: tuple[Expr, ...]
    value: Expr
    mask: Expr | None = None

    @property
    def target(self) -> Load:
        """The element it writes, as a load."""
        return Load(self.buffer, self.indices, self.value.dtype)


@node
class Alloc(Stmt):
    """A buffer that exists during `body`; its contents start undefined."""

    buffer: Buffer
    body: Stmt


@node
class Let(Stmt):
    """`let name = value`: an index variable that has this value in `body`."""

    name: str
    value: Expr
    body: Stmt


@node
class Iter:
    """A block iterator: `kind` S (spatial) or R (reduction), its domain and what it is bound to."""

    name: str
    kind: str
    extent: Expr
    binding: Expr


@node
class Region:
    """A box of a buffer: a start and a number of elements in each dimension."""

    buffer: str
    ranges: tuple[tuple[Expr, Expr], ...]


@node
class Block(Stmt):
    """A computation with a signature, the unit that schedules move.

    `body` mentions its iterators, never loops. `init` runs in place of nothing before the first
    reduction step. Where `predicate` (over loop variables) is false the instance does not run.
    """

    name: str
    iters: tuple[Iter, ...]
    reads: tuple[Region, ...]
    writes: tuple[Region, ...]
    body: Stmt
    init: Stmt | None = None
    predicate: Expr = TRUE
    annotations: Annotations = ()


@node
class Tile(Stmt):
    """A whole tile moved or computed at once; its meaning is its expansion to loops.

    `op` is one of `fill copy mma mma.packed dot map.<function> reduce.<reduction>`, see `tiles.py`;
    `intrinsic` names the instruction chosen for it.
    """

    op: str
    dst: Region
    srcs: tuple[Region, ...]
    intrinsic: str = ""


@node
class Role:
    """What some warps of a block do: `warps` of them run `body`, as a block of their own.

    Threads are numbered from 0 within a role. Each has `registers` registers, as many as every
    thread of the block where that is 0.
    """

    name: str
    warps: int
    registers: int
    body: Stmt


@node
class Roles(Stmt):
    """`roles { ... }`: the warps of a block divided among roles, in order, which run at once."""

    roles: tuple[Role, ...]


@node
class Barrier(Stmt):
    """`barrier`: the threads of a block wait for each other; no effect on a single thread."""


@node
class CpAsyncCommit(Stmt):
    """`cp_async_commit`: the copies started by a thread since the last one form a group."""


@node
class CpAsyncWait(Stmt):
    """`cp_async_wait n`: a thread waits until at most `pending` groups of its copies are left."""

    pending: int


@node
class MbarrierInit(Stmt):
    """`mbarrier_init barrier count n`: each phase of these mbarriers completes with n arrivals.

    A TMA copy is an arrival, whose phase also waits for the bytes. The first phase has parity 0.
    """

    barrier: Region
    count: int


@node
class MbarrierArrive(Stmt):
    """`mbarrier_arrive barrier ? mask`: each warp arrives once, none where the mask is false."""

    barrier: Region
    mask: Expr | None = None


@node
class MbarrierWait(Stmt):
    """`mbarrier_wait barrier parity e`: a thread waits for the phase of that parity to complete.

    It goes on where the phase of the other parity is the current one: with parity 1 at once, as
    long as the first phase is not complete.
    """

    barrier: Region
    parity: Expr


@node
class Signal(Stmt):
    """`signal flag`: a flag in global memory is incremented, after all stores before (release).

    In a warp loop each warp does so for the stores of its threads; outside of thread loops, the
    first thread of a block for all stores before the last barrier.
    """

    flag: Region


@node
class Await(Stmt):
    """`await flag count e`: wait until a flag is at least `count`; what was signalled is visible.

    In a warp loop each thread waits; outside of thread loops the first thread of a block waits, and
    a barrier must follow (acquire).
    """

    flag: Region
    count: Expr


@node
class Func:
    """A kernel: parameters (outputs last), symbolic sizes it mentions, and its body.

    `layouts` records for a parameter how its caller must rearrange it: see `transform_layout`.
    """

    name: str
    params: tuple[Buffer, ...]
    outputs: tuple[str, ...]
    body: Stmt
    layouts: tuple[tuple[str, Layout], ...] = ()
    annotations: Annotations = ()
    loc: Loc = NOWHERE


@node
class Layout:
    """How a parameter is packed: from a logical shape to the shape that the kernel reads.

    Each packed dimension takes part of one logical dimension: `(axis, block, 0)` the block number,
    `(axis, block, 1)` the place within the block; `block` 0 means the whole dimension. Elements
    beyond the logical shape are zero.
    """

    logical: Shape
    parts: tuple[tuple[int, int, int], ...]
