"""Vectorised loops → vector statements.

    for j in vectorize(4) {
      C[i * 8 + j] = A[j] + b      →      C[ramp(i * 8, 1, 4)] = A[ramp(0, 1, 4)] + b
    }

A guard that depends on the loop becomes the mask of the stores and loads under it; on a buffer of
the function's own that holds the whole vector, a masked store is a choice between new and old, so
that the buffer can still live in registers. The loop's body may hold stores, guards, and unrolled
or serial loops whose extents do not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.arith.affine import stride_of
from tilewright.arith.bounds import bound, loop_ranges
from tilewright.arith.expr import Expr, Load, Select, Var, as_int, const
from tilewright.arith.interval import Interval
from tilewright.arith.simplify import simplify
from tilewright.arith.vector import Ramp
from tilewright.arith.walk import free_vars, map_children, substitute
from tilewright.core.errors import CodegenError
from tilewright.ir.loop.nodes import Alloc, For, Func, If, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import PRIVATE
from tilewright.ir.loop.walk import map_stmt, substitute_stmt


def vectorize(func: Func) -> Func:
    """`func` with every vectorized loop as vector statements."""
    return replace(func, body=_outside(func.body, {}, {}))


def _outside(stmt: Stmt, own: Mapping[str, int], ranges: Mapping[str, Interval]) -> Stmt:
    """Rewrite a statement that is in no vectorised loop.

    `own` are the sizes of buffers that no other thread writes to, `ranges` the values that loops
    around it take.
    """
    if isinstance(stmt, Alloc) and stmt.buffer.scope in PRIVATE:
        own = {**own, stmt.buffer.name: as_int(stmt.buffer.shape[0]) or 0}
    if isinstance(stmt, For):
        own = {} if stmt.kind == "parallel" else own
        ranges = {**ranges, **loop_ranges({stmt.name: stmt.extent})}
    if not (isinstance(stmt, For) and stmt.kind == "vectorize"):
        return map_stmt(stmt, lambda s: _outside(s, own, ranges))
    lanes = as_int(stmt.extent)
    if lanes is None:
        return map_stmt(replace(stmt, kind="serial"), lambda s: _outside(s, own, ranges))
    if lanes == 1:
        return _outside(substitute_stmt(stmt.body, {stmt.name: const(0)}), own, ranges)
    return _Vectorizer(stmt.name, lanes, own, ranges).stmt(stmt.body, None)


class _Vectorizer:
    """Rewrites the body of one vectorised loop."""

    def __init__(
        self, loop: str, lanes: int, own: Mapping[str, int], ranges: Mapping[str, Interval]
    ) -> None:
        self.loop = loop
        self.lanes = lanes
        self.own = own
        self.ranges = dict(ranges)
        self.memo: dict[tuple[Expr, Expr | None], Expr] = {}

    def stmt(self, s: Stmt, mask: Expr | None) -> Stmt:
        match s:
            case Seq(stmts):
                return Seq(tuple(self.stmt(c, mask) for c in stmts))
            case For() if self.loop not in free_vars(s.extent):
                self.ranges |= loop_ranges({s.name: s.extent})
                self.memo.clear()  # another loop of this name may have been longer
                return replace(s, body=self.stmt(s.body, mask))
            case If(cond, then, None) if self.loop in free_vars(cond):
                lane_mask = self.expr(cond, None)
                return self.stmt(then, lane_mask if mask is None else mask & lane_mask)
            case If(cond, then, orelse) if self.loop not in free_vars(cond):
                other = None if orelse is None else self.stmt(orelse, mask)
                return If(self.expr(cond, None), self.stmt(then, mask), other)
            case Store():
                return self._store(s, mask)
            case Alloc():
                return replace(s, body=self.stmt(s.body, mask))
        raise CodegenError(
            "vectorize.statement", f"cannot vectorise {type(s).__name__} under loop {self.loop}"
        )

    def _store(self, s: Store, mask: Expr | None) -> Stmt:
        index = self._index(s.indices[0], mask)
        value = self.expr(s.value, mask)
        if s.mask is not None:
            own = self.expr(s.mask, mask)
            mask = own if mask is None else mask & own
        if index.lanes == 1 and value.lanes > 1:
            raise CodegenError(
                "vectorize.reduction",
                f"loop {self.loop} accumulates into {s.buffer}: factor the reduction first",
            )
        if mask is not None and self._holds(s.buffer, index):
            old = Load(s.buffer, (index,), value.dtype)
            return Store(s.buffer, (index,), Select(mask, value, old))
        return Store(s.buffer, (index,), value, mask)

    def _holds(self, buffer: str, index: Expr) -> bool:
        """Whether a whole vector at `index` is in a buffer of this thread: no mask is needed."""
        if not isinstance(index, Ramp) or buffer not in self.own:
            return False
        return bound(index, self.ranges).within(Interval(0, self.own[buffer] - 1))

    def expr(self, e: Expr, mask: Expr | None) -> Expr:
        """`e` for all lanes at once; what does not depend on the loop stays scalar."""
        if self.loop not in free_vars(e):
            return e
        key = (e, mask)
        if key not in self.memo:
            self.memo[key] = self._rebuild(e, mask)
        return self.memo[key]

    def _rebuild(self, e: Expr, mask: Expr | None) -> Expr:
        if isinstance(e, Var):
            return Ramp(const(0), 1, self.lanes)
        if isinstance(e, Load):
            index = self._index(e.indices[0], mask)
            own = None if e.mask is None else self.expr(e.mask, mask)
            if own is None and self._holds(e.buffer, index):
                return Load(e.buffer, (index,), e.dtype)
            both = own if mask is None else (mask if own is None else mask & own)
            return Load(e.buffer, (index,), e.dtype, both)
        return map_children(e, lambda c: self.expr(c, mask))

    def _index(self, e: Expr, mask: Expr | None) -> Expr:
        if self.loop not in free_vars(e):
            return e
        stride = stride_of(e, self.loop)
        if stride is None:
            return self.expr(e, mask)
        base = simplify(substitute(e, {self.loop: const(0)}))
        return Ramp(base, stride, self.lanes) if stride else base
