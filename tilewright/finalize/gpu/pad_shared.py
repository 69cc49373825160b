"""Padding of shared memory: rows one word or one vector longer, against bank conflicts.

    alloc T: f32[32, 32] @shared                   alloc T: f32[32, 33] @shared
    for x in thread(32) { ... T[x, i] ... }   →    for x in thread(32) { ... T[x, i] ... }

With padding, the elements of a column lie in different banks. Where rows are accessed in vectors,
these stay aligned, and the vectors of a column lie in different banks. Rows that mma instructions
read stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import loads, substitute
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Stmt, Store, Tile
from tilewright.ir.loop.thread_mapping import THREAD
from tilewright.ir.loop.walk import map_stmt, own_expressions, statements, touched_buffers
from tilewright.target.gpu import VECTOR_BYTES

# Bytes of all banks, and of one.
BANKS, WORD = 128, 4


def pad_shared(func: Func) -> Func:
    """`func` with padded rows where neighbouring threads read different rows."""

    def padded(stmt: Stmt) -> Stmt:
        stmt = map_stmt(stmt, padded)
        if isinstance(stmt, Alloc) and stmt.buffer.scope == "shared":
            *front, row = stmt.buffer.shape or (const(0),)
            more = _padding(stmt)
            longer = replace(stmt.buffer, shape=(*front, row + more)) if more else stmt.buffer
            return replace(stmt, buffer=longer)
        return stmt

    return replace(func, body=padded(func.body))


def _padding(alloc: Alloc) -> int:
    """The elements that rows get more: none where threads do not read columns."""
    buffer, by_columns, widest = alloc.buffer, False, 1
    row = as_int(buffer.shape[-1]) if len(buffer.shape) > 1 else None
    if row is None or row * buffer.dtype.bytes % (BANKS // 2):
        return 0
    for path, stmt in statements(alloc.body):
        around = [s for s in path if isinstance(s, For)]
        if isinstance(stmt, Tile) and buffer.name in set().union(*touched_buffers(stmt)):
            return 0
        for access in _accesses(stmt, buffer):
            vectors = [loop for loop in around if loop.kind == "vectorize"]
            if any(stride_of(access[-1], loop.name) not in (0, 1) for loop in vectors):
                return 0
            widest = max(widest, _neighbours(access[-1], around, buffer.dtype.bytes))
            threads = [loop.name for loop in around if loop.kind == THREAD]
            by_columns |= bool(threads) and _by_columns(access, threads[-1])
    return max(widest, WORD // buffer.dtype.bytes) if by_columns else 0


def _neighbours(column: Expr, around: Sequence[For], size: int) -> int:
    """The elements of a row that one thread accesses at a time: a vector, or what becomes one."""
    moving = [loop for loop in around if stride_of(column, loop.name) == 1]
    counts = [as_int(v.extent) or 1 for v in moving if v.kind in ("vectorize", "unroll")]
    return min(max(counts, default=1), VECTOR_BYTES // size)


def _by_columns(indices: Sequence[Expr], thread: str) -> bool:
    """Whether the first two neighbouring threads are at different rows of a column."""
    *rows, column = (_step(i, thread) for i in indices)
    return column is const(0) and any(row is not const(0) for row in rows)


def _step(index: Expr, thread: str) -> Expr:
    """How far the second thread is from the first."""
    first, second = (substitute(index, {thread: const(i)}) for i in range(2))
    return simplify(second - first)


def _accesses(stmt: Stmt, buffer: Buffer) -> list[tuple[Expr, ...]]:
    found = [x.indices for e in own_expressions(stmt) for x in loads(e) if x.buffer == buffer.name]
    if isinstance(stmt, Store) and stmt.buffer == buffer.name:
        found.append(stmt.indices)
    return found
