"""Allocations move to where they are used and shrink to what is used there.

    alloc C: f32[M, N]                        for i.0 in serial(M // 8) {
    for i.0 in serial(M // 8) {          →      alloc C: f32[8, 12] @local
      ... C[i.0 * 8 + i.1, j.0 * 12 + j.1]      ... C[i.1, j.1]
    }                                         }

A buffer moves under all loops that enclose every access to it, if what it then holds has a constant
size and fits into the memory there; otherwise it stays whole, in memory that the caller plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from tilewright.arith.bounds import NATURAL, Bounds, lower, upper
from tilewright.arith.expr import Expr, Load, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads, rewrite
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Region, Stmt, Store, Tile
from tilewright.ir.loop.walk import map_stmt, own_expressions, statements, statements_in
from tilewright.target.cpu import STACK_BYTES, UNASKED_STACK_BYTES

Box = Sequence[tuple[Expr, Expr]]
# Given a buffer, the loops it would stand in and its bytes there: its scope, `None` if it does not
# fit.
ScopeChoice = Callable[[Buffer, Sequence[For], int], str | None]


def stack_scope(buffer: Buffer, outer: Sequence[For], size: int) -> str | None:
    """The scope on a CPU: a thread's stack."""
    if size > (UNASKED_STACK_BYTES if buffer.scope == "global" else STACK_BYTES):
        return None
    return "local" if buffer.scope == "global" else buffer.scope


def compact_buffers(func: Func, choose: ScopeChoice = stack_scope) -> Func:
    """`func` with every allocation as deep and as small as its accesses allow."""

    def compacted(stmt: Stmt, around: tuple[For, ...]) -> Stmt:
        if isinstance(stmt, For):
            around = (*around, stmt)
        if not isinstance(stmt, Alloc):
            return map_stmt(stmt, lambda s: compacted(s, around))
        return _Placement(stmt.buffer, compacted(stmt.body, around), choose, around).result()

    return replace(func, body=compacted(func.body, ()))


class _Placement:
    """Where one buffer goes: the loops around all its accesses, and the box used inside them.

    `around` are the loops that it stands in already.
    """

    def __init__(
        self, buffer: Buffer, body: Stmt, choose: ScopeChoice, around: tuple[For, ...]
    ) -> None:
        self.buffer = buffer
        self.body = body
        self.choose = choose
        self.around = around
        self.accesses = [
            (tuple(s for s in path if isinstance(s, For)), access)
            for path, stmt in statements(body)
            for access in _own_accesses(stmt, buffer.name)
        ]

    def result(self) -> Stmt:
        """The body with the allocation put in place; unused buffers disappear."""
        if not self.accesses:
            return self.body
        outer = self._renewed(_common_prefix([loops for loops, _ in self.accesses]))
        starts, sizes, total = self._box(len(outer))
        scope = None if total is None else self.choose(self.buffer, (*self.around, *outer), total)
        if scope is None:
            return Alloc(self.buffer, self.body)
        small = Buffer(self.buffer.name, self.buffer.dtype, sizes, scope)
        shifted = _shift(self.body, self.buffer.name, starts)
        if not outer:
            return Alloc(small, shifted)
        return _wrap(shifted, outer[-1].name, lambda inner: Alloc(small, inner))

    def _renewed(self, outer: tuple[For, ...]) -> tuple[For, ...]:
        """The loops down to one that finds in the buffer what its iteration before has left."""
        first = next(s for s in statements_in(self.body) if _own_accesses(s, self.buffer.name))
        if not any(x.buffer == self.buffer.name for e in own_expressions(first) for x in loads(e)):
            return outer
        moving = {v for _, box in self.accesses for ends in box for e in ends for v in free_vars(e)}
        still = [loop.name not in moving and as_int(loop.extent) != 1 for loop in outer]
        return outer[: still.index(True)] if any(still) else outer

    def _box(self, depth: int) -> tuple[tuple[Expr, ...], tuple[Expr, ...], int | None]:
        """Start and size of each dimension within the common loops, and the bytes if constant."""
        dims = [self._dimension(d, depth, full) for d, full in enumerate(self.buffer.shape)]
        counts = [as_int(size) for _, size in dims]
        known = [n for n in counts if n is not None]
        total = self.buffer.dtype.bytes * prod(known) if len(known) == len(counts) else None
        return tuple(start for start, _ in dims), tuple(size for _, size in dims), total

    def _dimension(self, dim: int, depth: int, full: Expr) -> tuple[Expr, Expr]:
        """The part of one dimension that is used; all of it if that is not known."""
        start: Expr | None = None
        ends: list[int] = []
        for loops, box in self.accesses:
            # A loop that runs once is as good as none: its variable may be 0 in some accesses.
            once = [s for s in loops[:depth] if as_int(s.extent) == 1]
            inner = {s.name: s.extent for s in (*once, *loops[depth:])}
            first, last = box[dim]
            low, high = lower(first, inner), upper(last, inner)
            if low is None or high is None:
                return const(0), full
            low = simplify(low)
            start = low if start is None else start
            # A loop that may run less often in some iterations needs what it takes at most.
            extent = Bounds({}, NATURAL).of(simplify(high - start + 1)).hi
            if low is not start or extent is None:
                return const(0), full
            ends.append(extent)
        assert start is not None
        return start, const(max(ends))


def _own_accesses(stmt: Stmt, buffer: str) -> list[Box]:
    """The first and last index in each dimension of what a statement itself reads or writes."""
    points: list[Sequence[Expr]] = [
        load.indices for e in own_expressions(stmt) for load in loads(e) if load.buffer == buffer
    ]
    if isinstance(stmt, Store) and stmt.buffer == buffer:
        points.append(stmt.indices)
    boxes: list[Box] = [[(i, i) for i in indices] for indices in points]
    if isinstance(stmt, Tile):
        boxes += [
            [(start, start + (extent - 1)) for start, extent in region.ranges]
            for region in (stmt.dst, *stmt.srcs)
            if region.buffer == buffer
        ]
    return boxes


def _common_prefix(paths: Sequence[tuple[For, ...]]) -> tuple[For, ...]:
    shared: list[For] = []
    for level in zip(*paths, strict=False):
        if any(loop is not level[0] for loop in level) or level[0].kind in ("vectorize", "unroll"):
            break
        shared.append(level[0])
    return tuple(shared)


def _wrap(stmt: Stmt, loop: str, around: Callable[[Stmt], Stmt]) -> Stmt:
    """Put `around` the body of the loop called `loop`."""
    if isinstance(stmt, For) and stmt.name == loop:
        return replace(stmt, body=around(stmt.body))
    return map_stmt(stmt, lambda s: _wrap(s, loop, around))


def _shift(stmt: Stmt, buffer: str, starts: Sequence[Expr]) -> Stmt:
    """Subtract `starts` from every index into `buffer`."""

    def moved(indices: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(simplify(i - s) for i, s in zip(indices, starts, strict=True))

    def load(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.buffer == buffer:
            return Load(buffer, moved(e.indices), e.dtype, e.mask)
        return None

    def region(r: Region) -> Region:
        if r.buffer != buffer:
            return r
        first = moved([start for start, _ in r.ranges])
        return Region(
            buffer, tuple((start, n) for start, (_, n) in zip(first, r.ranges, strict=True))
        )

    def go(s: Stmt) -> Stmt:
        s = map_stmt(s, go, lambda e: rewrite(e, load))
        if isinstance(s, Tile):
            return replace(s, dst=region(s.dst), srcs=tuple(map(region, s.srcs)))
        if isinstance(s, Store) and s.buffer == buffer:
            return Store(buffer, moved(s.indices), s.value, s.mask)
        return s

    return go(stmt)
