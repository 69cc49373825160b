"""What one thread alone reads and writes, step after step, it keeps in a register.

    for t in serial(T) {grid_sync=1} {          alloc Y.kept: f32[8] @register
      for b in grid(2) {                       for t in serial(T) {grid_sync=1} {
        for x in thread(4) {                     for b in grid(2) {
          Y[b * 4 + x] =                    →      for x in thread(4) {
            f(t == 0 ? 0 : Y[b * 4 + x])             Y.kept[b * 4 + x] =
        }                                              f(t == 0 ? 0 : Y.kept[b * 4 + x])
      }                                              Y[b * 4 + x] = Y.kept[b * 4 + x]
    }                                              }
                                                 }
                                               }

Its blocks of threads stay for all steps, and so do their registers. Nothing is read before it is
written: whoever calls a function knows nothing of what its outputs have been.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tilewright.arith.expr import Expr, Load
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads, rewrite
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import THREAD, is_grid_sync
from tilewright.ir.loop.walk import (
    buffers,
    map_exprs,
    own_expressions,
    rewrite_stmts,
    seq,
    statements,
    touched_buffers,
)


@node
class _Access:
    """Where a buffer is touched: the thread loop that is all around, and the indices there."""

    nest: For | None
    indices: tuple[Expr, ...]
    is_store: bool


def keep(func: Func) -> Func:
    """`func` with what its threads keep from step to step, where they stay."""
    loop = next((s for _, s in statements(func.body) if is_grid_sync(s)), None)
    if not isinstance(loop, For):
        return func
    known = buffers(func)
    reads, writes = touched_buffers(loop)
    rest = rewrite_stmts(func.body, lambda s: Seq(()) if s is loop else None)
    alone = (reads & writes).difference(*touched_buffers(rest))
    plain = [name for name in sorted(alone) if known[name].scope == "global"]
    own = [name for name in plain if _is_own(list(_accesses(loop, name)), loop.name)]
    changed: Stmt = loop
    for name in own:
        changed = _kept(changed, known[name])
    body = rewrite_stmts(func.body, lambda s: changed if s is loop else None)
    for name in own:
        body = Alloc(_register(known[name]), body)
    return replace(func, body=body)


def _register(buffer: Buffer) -> Buffer:
    return replace(buffer, name=f"{buffer.name}.kept", scope="register")


def _is_own(found: list[_Access], step: str) -> bool:
    """Whether one thread touches each element, always the same one, and writes it once."""
    first = found[0]
    if first.nest is None or sum(access.is_store for access in found) != 1:
        return False
    moves = any(step in free_vars(i) for i in first.indices)
    return not moves and all(x.nest is first.nest and x.indices == first.indices for x in found)


def _accesses(loop: Stmt, name: str) -> Iterator[_Access]:
    for path, stmt in statements(loop):
        around = [s for s in path if isinstance(s, For)]
        nest = next((s for s in around if s.kind == THREAD), None)
        extents = {s.name: s.extent for s in around}
        places = [x.indices for e in own_expressions(stmt) for x in loads(e) if x.buffer == name]
        for indices in places:
            yield _Access(nest, tuple(simplify(i, extents) for i in indices), False)
        if isinstance(stmt, Store) and stmt.buffer == name:
            plain = stmt.mask is None
            indices = tuple(simplify(i, extents) for i in stmt.indices)
            yield _Access(nest if plain else None, indices, True)


def _kept(loop: Stmt, buffer: Buffer) -> Stmt:
    """A loop that reads a register instead of a buffer, and writes both."""
    name = _register(buffer).name

    def load(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.buffer == buffer.name:
            return Load(name, e.indices, e.dtype)
        return None

    def store(s: Stmt) -> Stmt | None:
        if not isinstance(s, Store) or s.buffer != buffer.name:
            return None
        here = Load(name, s.indices, buffer.dtype)
        return seq(Store(name, s.indices, s.value), Store(s.buffer, s.indices, here))

    return rewrite_stmts(map_exprs(loop, lambda e: rewrite(e, load)), store)
