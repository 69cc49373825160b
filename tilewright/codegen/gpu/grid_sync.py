"""Blocks of threads that stay for all steps of a loop, and wait for each other between them.

    for t in serial(T) {grid_sync=1} {        threads: W.held = W
      for b in grid(128) {                   for t in serial(T) {
        threads: W.held = W                    threads: X.held = X[t]
        threads: ... P[t % 2] ... W.held       wait until the blocks have arrived t * 128 times
        threads: ... X[t] ...            →     threads: ... P[t % 2] ... W.held
        arrived[0] = arrived[0] + 1            threads: ... X.held ...
      }                                        arrived[0] += 1, by the last thread of a block
    }                                        }

What a nest does in every step alike is done before the first one: its registers and shared memory
are the block's as long as it stays. What reads nothing that any step writes comes before the wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.codegen.gpu.allreduce import barrier
from tilewright.core.dtypes import I64
from tilewright.ir.loop.nodes import Alloc, For, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import GRID, THREAD, THREAD_KINDS, is_grid_sync
from tilewright.ir.loop.walk import expressions, loops, statements, touched_buffers

if TYPE_CHECKING:
    from tilewright.codegen.gpu.nvptx import LaunchEmitter

# The variable that is the number of a block.
BLOCK = "block"
# What all threads of a block have written is there for those that find it counted.
_ARRIVE = (
    "{\\0A.reg .pred p;\\0Asetp.eq.u32 p, $1, 0;\\0A@p red.release.gpu.global.add.u64 [$0], 1;\\0A}"
)
# The first thread stays here until blocks have arrived so many times.
_AWAIT = (
    "{\\0A.reg .pred p;\\0A.reg .u64 v;\\0Asetp.ne.u32 p, $2, 0;\\0A@p bra DONE;\\0AWAIT:\\0A"
    "ld.acquire.gpu.global.u64 v, [$0];\\0Asetp.lt.u64 p, v, $1;\\0A@p bra WAIT;\\0ADONE:\\0A}"
)
ARRIVE, AWAIT = "tw.blocks.arrive", "tw.blocks.await"
TEXTS = {
    ARRIVE: f"""
define internal void @{ARRIVE}(ptr %count, i64 %thread) alwaysinline {{
  %place = addrspacecast ptr %count to ptr addrspace(1)
  %number = trunc i64 %thread to i32
  call void asm sideeffect "{_ARRIVE}", "l,r,~{{memory}}"(ptr addrspace(1) %place, i32 %number)
  ret void
}}
""",
    AWAIT: f"""
define internal void @{AWAIT}(ptr %count, i64 %times, i64 %thread) alwaysinline {{
  %place = addrspacecast ptr %count to ptr addrspace(1)
  %number = trunc i64 %thread to i32
  call void asm sideeffect "{_AWAIT}", "l,l,r,~{{memory}}"(ptr addrspace(1) %place, i64 %times,
                                                           i32 %number)
  ret void
}}
""",
}


class Staying:
    """Emits the loop of a launch whose blocks stay, and what is in it."""

    def __init__(self, emitter: LaunchEmitter, body: Stmt) -> None:
        self.emitter = emitter
        self.loop = next(s for s in loops(body) if is_grid_sync(s))
        self.nests = [s for s in loops(self.loop) if s.kind == GRID]
        (self.counter,) = {_last(nest).buffer for nest in self.nests}
        self.changed = _written(self.loop)

    def emits(self, stmt: Stmt) -> bool:
        """Whether a statement is emitted here: nests are, and before the loop what is done once."""
        if stmt is self.loop:
            self._begin()
        if not isinstance(stmt, For) or stmt.kind != GRID:
            return False
        self._nest(stmt)
        return True

    def _begin(self) -> None:
        """What is done once, before the first step."""
        for nest in self.nests:
            body = nest.body
            while isinstance(body, Alloc):
                self.emitter.allocate(body.buffer)
                body = body.body
        for nest in self.nests:
            self._among(nest, self._once(nest))
        barrier(self.emitter.expressions)

    def _nest(self, nest: For) -> None:
        """A nest in a step: what needs not wait, the wait, the rest, and that it has ended."""
        early, rest = list[Stmt](), list[Stmt]()
        once, touched = self._once(nest), set[str]()
        for s in _phases(nest):
            if s in once or s is _last(nest):
                continue
            if self._is_early(s) and touched.isdisjoint(_written(s)):
                early.append(s)
            else:
                rest.append(s)
                touched |= set[str]().union(*touched_buffers(s))
        self._among(nest, early, rest)

    def _among(self, nest: For, *parts: Sequence[Stmt]) -> None:
        """Let the blocks of a nest do what they are to do, with a wait between two parts."""
        em, fn, extent = self.emitter, self.emitter.fn, as_int(nest.extent)
        ex = em.expressions
        assert extent is not None
        ex.values[nest.name] = ex.values[BLOCK]
        ex.ranges[nest.name] = Interval(0, extent - 1)
        inside, done = fn.label("block"), fn.label("others")
        ex.begin_statement()
        found = ex.value(Var(BLOCK) < extent)
        fn.emit(f"br i1 {found}, label %{inside}, label %{done}")
        fn.start(inside)
        with fn.scope():
            for number, part in enumerate(parts):
                if number:
                    self._wait(nest)
                for s in part:
                    em.emit(s)
            if len(parts) > 1:
                self._arrive()
        fn.emit(f"br label %{done}")
        fn.start(done)

    def _wait(self, nest: For) -> None:
        """Wait until all nests before this one have ended."""
        ex = self.emitter.expressions
        sizes = [as_int(s.extent) or 0 for s in self.nests]
        before = sum(sizes[: self.nests.index(nest)])
        ex.begin_statement()
        times = ex.value(simplify(Var(self.loop.name) * sum(sizes) + before))
        self._call(AWAIT, f"i64 {times}, ")
        barrier(ex)

    def _arrive(self) -> None:
        barrier(self.emitter.expressions)
        self._call(ARRIVE, "")

    def _call(self, name: str, given: str) -> None:
        ex, fn = self.emitter.expressions, self.emitter.fn
        fn.module.include(name, TEXTS[name])
        ex.begin_statement()
        place = ex.element_pointer(self.counter, I64, const(0))
        fn.emit(f"call void @{name}(ptr {place}, {given}i64 {ex.values[THREAD]})")
        ex.loads.forget()

    def _once(self, nest: For) -> list[Stmt]:
        """The phases that are the same in every step: nothing else writes what they write."""
        phases = list(_phases(nest))
        found = []
        for s in phases:
            others = set[str]().union(*(_written(p) for p in phases if p is not s))
            steady = all(self.loop.name not in free_vars(e) for e in expressions(s))
            if steady and self._is_early(s) and others.isdisjoint(_written(s)):
                found.append(s)
        return found

    def _is_early(self, s: Stmt) -> bool:
        """Whether a phase reads nothing that is written in the loop, and writes what is its own."""
        if not (isinstance(s, For) and s.kind in THREAD_KINDS):
            return False
        reads, writes = touched_buffers(s)
        own = {a.buffer.name for _, a in statements(self.loop) if isinstance(a, Alloc)}
        return reads.isdisjoint(self.changed) and writes <= own


def _phases(nest: For) -> Iterator[Stmt]:
    """What the threads of a block do one after another, barriers included."""
    body = nest.body
    while isinstance(body, Alloc):
        body = body.body
    yield from body.stmts if isinstance(body, Seq) else (body,)


def _last(nest: For) -> Store:
    """Where a nest counts that it has ended."""
    *_, last = _phases(nest)
    assert isinstance(last, Store)
    return last


def _written(stmt: Stmt) -> set[str]:
    """All buffers that are written, one's own included."""
    own = {s.buffer.name for _, s in statements(stmt) if isinstance(s, Alloc)}
    return touched_buffers(stmt)[1] | own
