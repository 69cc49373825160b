"""Register promotion in cooperative loops: a state of one thread stays in its registers.

    for t in serial(T) {grid_sync=1} {         alloc Y.kept: f32[8] @register
      for b in grid(2) {                       for t in serial(T) {grid_sync=1} {
        for x in thread(4) {                     for b in grid(2) {
          Y[b * 4 + x] =                    →      for x in thread(4) {
            f(t == 0 ? 0 : Y[b * 4 + x])             Y.kept[b * 4 + x] =
        }                                              f(t == 0 ? 0 : Y.kept[b * 4 + x])
      }                                              Y[b * 4 + x] = Y.kept[b * 4 + x]
    }                                              }
                                                 }
                                               }

A cooperative launch covers all steps, so registers last from one to the next. The first step reads
nothing: a function does not know the former contents of its outputs.
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
    statements_in,
    touched_buffers,
)


@node
class _Access:
    """An access to a buffer: the outermost thread loop around it, and the indices."""

    nest: For | None
    indices: tuple[Expr, ...]
    is_store: bool


def promote_registers(func: Func) -> Func:
    """`func` with the buffers that only one thread touches promoted, in cooperative loops."""
    loop = next((s for s in statements_in(func.body) if is_grid_sync(s)), None)
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
    """Whether each element is touched by one thread only, which writes it once."""
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
    """A loop that reads the register instead of the buffer, and writes both."""
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
