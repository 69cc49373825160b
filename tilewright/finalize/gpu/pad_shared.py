"""Padding of shared memory: rows one word longer, against bank conflicts.

    alloc T: f32[32, 32] @shared                   alloc T: f32[32, 33] @shared
    for x in thread(32) { ... T[x, i] ... }   →    for x in thread(32) { ... T[x, i] ... }

With padding, the elements of a column lie in different banks. Rows that are read in vectors of more
than a word, or by mma instructions, stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.walk import loads
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Stmt, Store, Tile
from tilewright.ir.loop.thread_mapping import THREAD
from tilewright.ir.loop.walk import map_stmt, own_expressions, statements, touched_buffers

# Bytes of all banks, and of one.
BANKS, WORD = 128, 4


def pad_shared(func: Func) -> Func:
    """`func` with padded rows where neighbouring threads read different rows."""

    def padded(stmt: Stmt) -> Stmt:
        stmt = map_stmt(stmt, padded)
        if isinstance(stmt, Alloc) and stmt.buffer.scope == "shared" and _is_read_by_columns(stmt):
            *front, row = stmt.buffer.shape
            more = const(max(1, WORD // stmt.buffer.dtype.bytes))
            return replace(stmt, buffer=replace(stmt.buffer, shape=(*front, row + more)))
        return stmt

    return replace(func, body=padded(func.body))


def _is_read_by_columns(alloc: Alloc) -> bool:
    buffer, found = alloc.buffer, False
    row = as_int(buffer.shape[-1]) if len(buffer.shape) > 1 else None
    if row is None or row * buffer.dtype.bytes % (BANKS // 2):
        return False
    for path, stmt in statements(alloc.body):
        around = [s for s in path if isinstance(s, For)]
        accesses = _accesses(stmt, buffer)
        if isinstance(stmt, Tile) and buffer.name in set().union(*touched_buffers(stmt)):
            return False
        wide = [loop.extent for loop in around if loop.kind == "vectorize"]
        if accesses and any((as_int(n) or WORD) * buffer.dtype.bytes > WORD for n in wide):
            return False
        threads = [loop.name for loop in around if loop.kind == THREAD]
        found |= bool(threads) and any(_by_columns(x, threads[-1]) for x in accesses)
    return found


def _by_columns(indices: Sequence[Expr], thread: str) -> bool:
    """Whether neighbouring threads are at different rows."""
    return stride_of(indices[-1], thread) == 0 and any(
        stride_of(i, thread) != 0 for i in indices[:-1]
    )


def _accesses(stmt: Stmt, buffer: Buffer) -> list[tuple[Expr, ...]]:
    found = [x.indices for e in own_expressions(stmt) for x in loads(e) if x.buffer == buffer.name]
    if isinstance(stmt, Store) and stmt.buffer == buffer.name:
        found.append(stmt.indices)
    return found
