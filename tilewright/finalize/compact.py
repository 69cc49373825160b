"""Allocations move to where they are used and shrink to what is used there.

    alloc C: f32[M, N]                        for i.0 in serial(M // 8) {
    for i.0 in serial(M // 8) {          →      alloc C: f32[8, 12] @local
      ... C[i.0 * 8 + i.1, j.0 * 12 + j.1]      ... C[i.1, j.1]
    }                                         }

A buffer moves under all loops that enclose every access to it, if what it then holds has a constant
size small enough for the stack; otherwise it stays whole, in memory that the caller plans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tilewright.arith.bounds import lower, upper
from tilewright.arith.expr import Expr, Load, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import loads, rewrite
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Stmt, Store, Tile
from tilewright.ir.loop.walk import map_stmt, own_expressions, statements

# Bytes one buffer may take on a thread's stack.
STACK_LIMIT = 256 * 1024


def compact(func: Func) -> Func:
    """`func` with every allocation as deep and as small as its accesses allow."""
    return replace(func, body=_compact(func.body))


def _compact(stmt: Stmt) -> Stmt:
    if not isinstance(stmt, Alloc):
        return map_stmt(stmt, _compact)
    body = _compact(stmt.body)
    return _Placement(stmt.buffer, body).result()


class _Placement:
    """Where one buffer goes: the loops around all its accesses, and the box used inside them."""

    def __init__(self, buffer: Buffer, body: Stmt) -> None:
        self.buffer = buffer
        self.body = body
        self.accesses = [
            (tuple(s for s in path if isinstance(s, For)), access)
            for path, stmt in statements(body)
            for access in _own_accesses(stmt, buffer.name)
        ]
        # An instruction reads a tile as it lies in the whole buffer.
        self.in_tiles = any(
            isinstance(s, Tile) and buffer.name in {r.buffer for r in (s.dst, *s.srcs)}
            for _, s in statements(body)
        )

    def result(self) -> Stmt:
        """The body with the allocation put in place; unused buffers disappear."""
        if self.in_tiles:
            return Alloc(self.buffer, self.body)
        if not self.accesses:
            return self.body
        outer = _common_prefix([loops for loops, _ in self.accesses])
        box = self._box(len(outer))
        if box is None:
            return Alloc(self.buffer, self.body)
        starts, sizes = box
        scope = self.buffer.scope if self.buffer.scope != "global" else "local"
        small = Buffer(self.buffer.name, self.buffer.dtype, sizes, scope)
        shifted = _shift(self.body, self.buffer.name, starts)
        if not outer:
            return Alloc(small, shifted)
        return _wrap(shifted, outer[-1].name, lambda inner: Alloc(small, inner))

    def _box(self, depth: int) -> tuple[tuple[Expr, ...], tuple[Expr, ...]] | None:
        """Start and size of each dimension within the common loops, if small and constant."""
        starts, sizes, total = [], [], self.buffer.dtype.bytes
        for dim, full in enumerate(self.buffer.shape):
            start, size = self._dimension(dim, depth, full)
            count = as_int(size)
            if count is None:
                return None
            starts.append(start)
            sizes.append(size)
            total *= count
        return (tuple(starts), tuple(sizes)) if total <= STACK_LIMIT else None

    def _dimension(self, dim: int, depth: int, full: Expr) -> tuple[Expr, Expr]:
        """The part of one dimension that is used; all of it where that cannot be told."""
        start: Expr | None = None
        ends: list[int] = []
        for loops, indices in self.accesses:
            inner = {s.name: s.extent for s in loops[depth:]}
            low, high = lower(indices[dim], inner), upper(indices[dim], inner)
            if low is None or high is None:
                return const(0), full
            low = simplify(low)
            start = low if start is None else start
            extent = as_int(simplify(high - start + 1))
            if low is not start or extent is None:
                return const(0), full
            ends.append(extent)
        assert start is not None
        return start, const(max(ends))


def _own_accesses(stmt: Stmt, buffer: str) -> list[Sequence[Expr]]:
    found: list[Sequence[Expr]] = [
        load.indices for e in own_expressions(stmt) for load in loads(e) if load.buffer == buffer
    ]
    if isinstance(stmt, Store) and stmt.buffer == buffer:
        found.append(stmt.indices)
    return found


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

    def go(s: Stmt) -> Stmt:
        s = map_stmt(s, go, lambda e: rewrite(e, load))
        if isinstance(s, Store) and s.buffer == buffer:
            return Store(buffer, moved(s.indices), s.value, s.mask)
        return s

    return go(stmt)
