"""Cooperative launches: one kernel for all steps of a loop, with grid-wide barriers between them.

    for t in serial(T) {grid_sync=1} {       threads: W.held = W
      for b in grid(128) {                   for t in serial(T) {
        threads: W.held = W                    threads: X.held = X[t]
        threads: ... P[t % 2] ... W.held       wait until blocks have arrived t * 128 times
        threads: ... X[t] ...            →     threads: ... P[t % 2] ... W.held
        arrived[0] = arrived[0] + 1            threads: ... X.held ...
      }                                        arrived[0] += 1, once a block
    }                                        }

Loop-invariant phases are hoisted before the first step: registers and shared memory last for the
whole launch. Phases that read nothing written in the loop run before the wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.codegen.gpu.block_emitter import BlockEmitter
from tilewright.codegen.gpu.launches import Launch
from tilewright.codegen.gpu.synchronization import barrier
from tilewright.codegen.llvm.expressions import ExprEmitter
from tilewright.core.dtypes import I64, DType
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import GRID, THREAD, THREAD_KINDS, is_grid_sync
from tilewright.ir.loop.walk import expressions, loops, statements_in, touched_buffers

# The variable that is the index of a block.
BLOCK = "block"
# Publishes what the threads of a block have stored: `red.release` to the counter.
_ARRIVE = (
    "{\\0A.reg .pred p;\\0Asetp.eq.u32 p, $1, 0;\\0A@p red.release.gpu.global.add.u64 [$0], 1;\\0A}"
)
# The first thread spins until blocks have arrived so many times: `ld.acquire`.
_WAIT = (
    "{\\0A.reg .pred p;\\0A.reg .u64 v;\\0Asetp.ne.u32 p, $2, 0;\\0A@p bra DONE;\\0AWAIT:\\0A"
    "ld.acquire.gpu.global.u64 v, [$0];\\0Asetp.lt.u64 p, v, $1;\\0A@p bra WAIT;\\0ADONE:\\0A}"
)
ARRIVE, WAIT = "tw.blocks.arrive", "tw.blocks.wait"
TEXTS = {
    ARRIVE: f"""
define internal void @{ARRIVE}(ptr %count, i64 %thread) alwaysinline {{
  %place = addrspacecast ptr %count to ptr addrspace(1)
  %number = trunc i64 %thread to i32
  call void asm sideeffect "{_ARRIVE}", "l,r,~{{memory}}"(ptr addrspace(1) %place, i32 %number)
  ret void
}}
""",
    WAIT: f"""
define internal void @{WAIT}(ptr %count, i64 %times, i64 %thread) alwaysinline {{
  %place = addrspacecast ptr %count to ptr addrspace(1)
  %number = trunc i64 %thread to i32
  call void asm sideeffect "{_WAIT}", "l,l,r,~{{memory}}"(ptr addrspace(1) %place, i64 %times,
                                                           i32 %number)
  ret void
}}
""",
}


class GridSyncKernel(BlockEmitter):
    """Emits a cooperative launch: its loop over steps, and the grid loops in it."""

    def __init__(
        self,
        expressions: ExprEmitter,
        launch: Launch,
        dtypes: Mapping[str, DType],
        params: Sequence[Buffer],
    ) -> None:
        super().__init__(expressions, launch, dtypes, params)
        self.loop = next(s for s in loops(launch.body) if is_grid_sync(s))
        self.nests = [s for s in loops(self.loop) if s.kind == GRID]
        (self.counter,) = {_last(nest).buffer for nest in self.nests}
        self.changed = _written(self.loop)

    def _statement(self, stmt: Stmt) -> None:
        if stmt is self.loop:
            self._hoisted()  # invariant phases come before the loop over steps
        if isinstance(stmt, For) and stmt.kind == GRID:
            self._nest(stmt)
        else:
            super()._statement(stmt)

    def _hoisted(self) -> None:
        """The loop-invariant phases, before the first step."""
        for nest in self.nests:
            body = nest.body
            while isinstance(body, Alloc):
                self.allocate(body.buffer)
                body = body.body
        for nest in self.nests:
            self._on_blocks(nest, self._invariant(nest))
        barrier(self.expressions)

    def _nest(self, nest: For) -> None:
        """A nest in a step: phases before the wait, the wait, the others, the arrival."""
        ahead, rest = list[Stmt](), list[Stmt]()
        hoisted, touched = self._invariant(nest), set[str]()
        for s in _phases(nest):
            if s in hoisted or s is _last(nest):
                continue
            if self._needs_no_wait(s) and touched.isdisjoint(_written(s)):
                ahead.append(s)
            else:
                rest.append(s)
                touched |= set[str]().union(*touched_buffers(s))
        self._on_blocks(nest, ahead, rest)

    def _on_blocks(self, nest: For, *parts: Sequence[Stmt]) -> None:
        """Run parts on the blocks of a nest, with a wait between two of them."""
        ex, fn, extent = self.expressions, self.fn, as_int(nest.extent)
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
                    self.emit(s)
            if len(parts) > 1:
                self._arrive()
        fn.emit(f"br label %{done}")
        fn.start(done)

    def _wait(self, nest: For) -> None:
        """The grid barrier: wait until all nests before this one have ended."""
        ex = self.expressions
        sizes = [as_int(s.extent) or 0 for s in self.nests]
        before = sum(sizes[: self.nests.index(nest)])
        ex.begin_statement()
        times = ex.value(simplify(Var(self.loop.name) * sum(sizes) + before))
        self._call_sync(WAIT, f"i64 {times}, ")
        barrier(ex)

    def _arrive(self) -> None:
        barrier(self.expressions)
        self._call_sync(ARRIVE, "")

    def _call_sync(self, name: str, given: str) -> None:
        ex, fn = self.expressions, self.fn
        fn.module.include(name, TEXTS[name])
        ex.begin_statement()
        place = ex.element_pointer(self.counter, I64, const(0))
        fn.emit(f"call void @{name}(ptr {place}, {given}i64 {ex.values[THREAD]})")
        ex.loads.forget()

    def _invariant(self, nest: For) -> list[Stmt]:
        """The phases that are the same in every step: no other phase writes what they write."""
        phases = list(_phases(nest))
        found = []
        for s in phases:
            others = set[str]().union(*(_written(p) for p in phases if p is not s))
            steady = all(self.loop.name not in free_vars(e) for e in expressions(s))
            if steady and self._needs_no_wait(s) and others.isdisjoint(_written(s)):
                found.append(s)
        return found

    def _needs_no_wait(self, s: Stmt) -> bool:
        """Whether a phase reads nothing that is written in the loop, and writes what is its own."""
        if not (isinstance(s, For) and s.kind in THREAD_KINDS):
            return False
        reads, writes = touched_buffers(s)
        own = {a.buffer.name for a in statements_in(self.loop) if isinstance(a, Alloc)}
        return reads.isdisjoint(self.changed) and writes <= own


def _phases(nest: For) -> Iterator[Stmt]:
    """The statements of a nest's body, barriers included."""
    body = nest.body
    while isinstance(body, Alloc):
        body = body.body
    yield from body.stmts if isinstance(body, Seq) else (body,)


def _last(nest: For) -> Store:
    """The arrival at the end of a nest."""
    *_, last = _phases(nest)
    assert isinstance(last, Store)
    return last


def _written(stmt: Stmt) -> set[str]:
    """All buffers that are written, local ones included."""
    own = {s.buffer.name for s in statements_in(stmt) if isinstance(s, Alloc)}
    return touched_buffers(stmt)[1] | own
