"""Changing accesses to buffers, with the signatures of blocks kept right."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tilewright.arith.expr import TRUE, Expr, Load
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import rewrite
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Alloc, Block, Buffer, For, Func, Stmt, Store
from tilewright.ir.loop.walk import map_stmt
from tilewright.schedule.analysis.dataflow import read, written

Extents = Mapping[str, Expr]
# A load or store of the buffer, and the extents of what its indices may mention.
LoadChange = Callable[[Load, Extents], Expr]
StoreChange = Callable[[Store, Extents], Stmt]


def _keep_load(load: Load, extents: Extents) -> Expr:
    return load


def _keep_store(store: Store, extents: Extents) -> Stmt:
    return store


class AccessRewriter:
    """Applies changes to each access to `buffer`; `known` are the buffers after the change."""

    def __init__(
        self,
        buffer: str,
        known: Mapping[str, Buffer],
        load: LoadChange = _keep_load,
        store: StoreChange = _keep_store,
    ) -> None:
        self.buffer = buffer
        self.known = known
        self.load = load
        self.store = store

    def func(self, func: Func) -> Func:
        """`func` with every access changed."""
        return replace(func, body=self.stmt(func.body, {}))

    def stmt(self, s: Stmt, extents: Extents) -> Stmt:
        """`s` with every access changed; `extents` are those of the loops around it."""
        if isinstance(s, Block):
            return self.block(s)
        if isinstance(s, For):
            extents = {**extents, s.name: s.extent}
        elif isinstance(s, Alloc) and s.buffer.name == self.buffer and self.buffer in self.known:
            s = Alloc(self.known[self.buffer], s.body)
        new = map_stmt(s, lambda c: self.stmt(c, extents), lambda e: self.expr(e, extents))
        if isinstance(new, Store) and new.buffer == self.buffer:
            return self.store(new, extents)
        return new

    def block(self, b: Block) -> Block:
        """`b` with every access rewritten and its signature derived again."""
        if self.buffer not in read(b) | written(b):
            return b
        inside = {it.name: it.extent for it in b.iters}
        body = self.stmt(b.body, inside)
        init = None if b.init is None else self.stmt(b.init, inside)
        if body is b.body and init is b.init:
            return b
        return make_block(
            b.name,
            b.iters,
            body,
            init,
            b.predicate,
            annotations=b.annotations,
            buffers=self.known,
        )

    def expr(self, e: Expr, extents: Extents) -> Expr:
        """`e` with every load of the buffer changed."""

        def change(x: Expr) -> Expr | None:
            if isinstance(x, Load) and x.buffer == self.buffer:
                return self.load(x, extents)
            return None

        return rewrite(e, change)


def simplify_loads(value: Expr, extents: Extents) -> Expr:
    """`value` with the indices and masks of its loads simplified; elements stay as written."""

    def tidy(e: Expr) -> Expr | None:
        if not isinstance(e, Load):
            return None
        mask = None if e.mask is None else simplify(e.mask, extents)
        indices = tuple(simplify(i, extents) for i in e.indices)
        return Load(e.buffer, indices, e.dtype, None if mask is TRUE else mask)

    return rewrite(value, tidy)
