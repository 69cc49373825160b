"""Renaming in loop functions: buffers, loops and other variables.

As when walking, nothing changed is the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tilewright.arith.expr import Expr, Load, Var
from tilewright.arith.walk import rewrite
from tilewright.ir.loop.nodes import (
    Alloc,
    Await,
    Block,
    Buffer,
    For,
    Let,
    MbarrierArrive,
    MbarrierInit,
    MbarrierWait,
    Region,
    Signal,
    Stmt,
    Store,
    Tile,
)
from tilewright.ir.loop.walk import map_exprs, rewrite_stmts, statements_in, substitute_stmt


def rename_buffers(stmt: Stmt, names: Mapping[str, str]) -> Stmt:
    """`stmt` with buffers renamed in loads, stores, regions and allocations."""

    def load(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.buffer in names:
            return Load(names[e.buffer], e.indices, e.dtype, e.mask)
        return None

    def rename(s: Stmt) -> Stmt | None:
        rename_one = _RENAME.get(type(s))
        return None if rename_one is None else rename_one(s, names)

    return rewrite_stmts(map_exprs(stmt, lambda e: rewrite(e, load)), rename)


def rename_loops(stmt: Stmt, part: str) -> Stmt:
    """A copy of a statement whose loops and other variables get names of their own."""
    names = {s.name: f"{s.name}.{part}" for s in statements_in(stmt) if isinstance(s, For | Let)}

    def rename(s: Stmt) -> Stmt | None:
        return replace(s, name=names[s.name]) if isinstance(s, For | Let) else None

    copied = substitute_stmt(stmt, {old: Var(new) for old, new in names.items()})
    return rewrite_stmts(copied, rename)


def _rename_region(r: Region, names: Mapping[str, str]) -> Region:
    return Region(names[r.buffer], r.ranges) if r.buffer in names else r


def _rename_store(s: Store, names: Mapping[str, str]) -> Stmt | None:
    return Store(names[s.buffer], s.indices, s.value, s.mask) if s.buffer in names else None


def _rename_alloc(s: Alloc, names: Mapping[str, str]) -> Stmt | None:
    b = s.buffer
    if b.name not in names:
        return None
    return Alloc(Buffer(names[b.name], b.dtype, b.shape, b.scope), s.body)


def _rename_block(s: Block, names: Mapping[str, str]) -> Stmt | None:
    if not any(r.buffer in names for r in s.reads + s.writes):
        return None
    reads, writes = (tuple(_rename_region(r, names) for r in rs) for rs in (s.reads, s.writes))
    return replace(s, reads=reads, writes=writes)


def _rename_tile(s: Tile, names: Mapping[str, str]) -> Stmt | None:
    if not any(r.buffer in names for r in (s.dst, *s.srcs)):
        return None
    srcs = tuple(_rename_region(r, names) for r in s.srcs)
    return replace(s, dst=_rename_region(s.dst, names), srcs=srcs)


def _rename_mbarrier(
    s: MbarrierInit | MbarrierArrive | MbarrierWait, names: Mapping[str, str]
) -> Stmt | None:
    renamed = _rename_region(s.barrier, names)
    return None if renamed is s.barrier else replace(s, barrier=renamed)


def _rename_flag(s: Signal | Await, names: Mapping[str, str]) -> Stmt | None:
    renamed = _rename_region(s.flag, names)
    return None if renamed is s.flag else replace(s, flag=renamed)


_RENAME: dict[type, Callable[..., Stmt | None]] = {
    Store: _rename_store,
    Alloc: _rename_alloc,
    Block: _rename_block,
    Tile: _rename_tile,
    **dict.fromkeys((MbarrierInit, MbarrierArrive, MbarrierWait), _rename_mbarrier),
    **dict.fromkeys((Signal, Await), _rename_flag),
}
