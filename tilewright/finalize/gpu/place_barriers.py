"""Barriers between threads of a block, where one reads what another has written.

    for x in thread(256) { T[x] = A[x] }           for x in thread(256) { T[x] = A[x] }
    for x in thread(256) { C[x] = T[255 - x] }  →   barrier
                                                   for x in thread(256) { C[x] = T[255 - x] }

A nest of thread or warp loops, or a statement of the first thread, is a *phase*. A barrier goes
between two phases that touch a buffer, of which one writes it. In a loop the last phases of an
iteration come before the first ones of the next. Private buffers need no barrier.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from tilewright.arith.expr import as_int
from tilewright.arith.walk import loads
from tilewright.ir.loop.nodes import Alloc, Barrier, For, Func, If, Seq, Stmt, Store, Tile
from tilewright.ir.loop.thread_mapping import (
    THREAD_KINDS,
    is_host_loop,
    private_buffers,
    threads_of,
)
from tilewright.ir.loop.walk import map_stmt, own_expressions, seq, touched_buffers


def place_barriers(func: Func) -> Func:
    """`func` with barriers between the phases of each block of threads."""
    private = private_buffers(func.body)
    return replace(func, body=_launches(func.body, private))


def _launches(stmt: Stmt, private: set[str]) -> Stmt:
    """Each nest by itself: launches run one after another."""
    if isinstance(stmt, Seq | Alloc) or is_host_loop(stmt):
        return map_stmt(stmt, lambda s: _launches(s, private))
    if threads_of(stmt) == 1:
        return stmt
    if isinstance(stmt, For) and stmt.kind == "grid":
        return replace(stmt, body=_Placer(private).placed(stmt.body, _Touched()))
    return _Placer(private).placed(stmt, _Touched())


@dataclass
class _Touched:
    """The buffers that were read and written since the last barrier."""

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)

    def copy(self) -> _Touched:
        return _Touched(set(self.reads), set(self.writes))

    def add(self, other: _Touched) -> None:
        self.reads |= other.reads
        self.writes |= other.writes

    def clear(self) -> None:
        self.reads.clear()
        self.writes.clear()

    def conflicts(self, other: _Touched) -> bool:
        return bool(self.writes & (other.reads | other.writes) or self.reads & other.writes)


class _Placer:
    """Walks through phases in order; `since` is what they touched since the last barrier."""

    def __init__(self, private: set[str]) -> None:
        self.private = private

    def placed(self, stmt: Stmt, since: _Touched) -> Stmt:
        """The statement with its barriers; `since` becomes what holds after it."""
        if isinstance(stmt, Seq):
            return seq(*(self.placed(s, since) for s in stmt.stmts))
        if isinstance(stmt, Alloc):
            return replace(stmt, body=self.placed(stmt.body, since))
        if isinstance(stmt, Store | Tile) or (isinstance(stmt, For) and stmt.kind in THREAD_KINDS):
            return _after_barrier(stmt, _passes(self._touched(stmt), since))
        if isinstance(stmt, For):
            return self._loop(stmt, since)
        if isinstance(stmt, If):
            return self._branch(stmt, since)
        return stmt

    def _decide(self, stmt: Stmt, since: _Touched) -> bool:
        """Whether to wait before all threads read a condition or a trip count."""
        found = {x.buffer for e in own_expressions(stmt) for x in loads(e)}
        return _passes(_Touched(found - self.private), since)

    def _loop(self, loop: For, since: _Touched) -> Stmt:
        """What an iteration touches last is pending at the start of the next."""
        waits = self._decide(loop, since)
        before, trial = since.copy(), since.copy()
        if as_int(loop.extent) != 1:
            self.placed(loop.body, trial)
        since.add(trial)
        body = self.placed(loop.body, since)
        since.add(before)  # there may be no iteration
        return _after_barrier(replace(loop, body=body), waits)

    def _branch(self, stmt: If, since: _Touched) -> Stmt:
        waits = self._decide(stmt, since)
        other = since.copy()
        then = self.placed(stmt.then, since)
        orelse = None if stmt.orelse is None else self.placed(stmt.orelse, other)
        since.add(other)
        return _after_barrier(If(stmt.cond, then, orelse), waits)

    def _touched(self, stmt: Stmt) -> _Touched:
        reads, writes = touched_buffers(stmt)
        return _Touched(reads - self.private, writes - self.private)


def _passes(own: _Touched, since: _Touched) -> bool:
    """Whether a phase must wait; from then on, it is part of what came since the last barrier."""
    waits = since.conflicts(own)
    if waits:
        since.clear()
    since.add(own)
    return waits


def _after_barrier(stmt: Stmt, waits: bool) -> Stmt:
    return seq(Barrier(), stmt) if waits else stmt
