"""Split-KV (Flash-Decoding): few rows and many keys, which are split over thread blocks.

    for part, batch, rows {
      as in `tiled_loops.py`, the keys of the part      m, l, o: its maxima, sums, weighted values
      parts.m, parts.l, parts.o = m, sum(q) l, o
    }
    for batch, rows, columns {
      peak = max(part) parts.m
      total = sum(part) parts.l * exp2(parts.m - peak)
      mix = sum(part) parts.o * exp2(parts.m - peak)
      y[i, e] = mix / total
    }

Parts are one more batch dimension, the first, which no operand has. Keys past the last one are
masked, so that a part may be empty.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.dtype_limits import lowest, neutral
from tilewright.arith.expr import Expr, Load, Var, binary, call, ceildiv, const, select
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Iter, Seq, Stmt, Store
from tilewright.ops.attention.flash_loops import E
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.score_mods import ROW
from tilewright.ops.attention.tiled_loops import LANES, Q, Tiles

PART, GROUP, C = Var("at.part"), Var("at.group"), Var("at.c")
# Columns of a thread of the second launch: one access of four words. Heads have whole vectors.
COLUMNS = 4
COMBINED = {"max": "max", "sum": "add"}


def parts_func(problem: Problem) -> Func:
    """The loop function of a `fused_attention` node whose keys come in parts, not yet scheduled."""
    return _Parts(problem).func()


class _Parts(Tiles):
    def __post_init__(self) -> None:
        super().__post_init__()
        self.parts = const(self.p.parts)
        self.batch = (PART, *self.batch)
        self.outer = (self.parts, *self.outer)
        self.seen = super()._visited()
        most = simplify(ceildiv(self.key_blocks, self.p.parts))
        self.key_blocks = simplify(most * self.parts)

    def func(self) -> Func:
        """The loop over parts, batches and rows, then the one that puts parts together."""
        body: Stmt = Seq((self._tasks(), self._together()))
        for buffer in reversed(self.own.values()):
            body = Alloc(buffer, body)
        return self._named(body)

    def _visited(self) -> Expr:
        """Each part has as many of the blocks of keys that some row of a block of rows sees."""
        return simplify(ceildiv(self.seen, self.p.parts))

    def _block(self) -> Expr:
        return Var(f"batch.{PART.name}") * self._visited() + Var("at.keys")

    def _finish(self) -> list[Stmt]:
        """What one part leaves, not yet divided."""
        lanes, columns = (Q, const(LANES)), (E, self.p.v[-1])
        return [
            self._map("parts.m", self._at("m", Q), lanes, inside=False),
            self._reduce("total", "sum", self._at("l", Q), lanes, inside=False),
            self._map("parts.l", self._at("total"), lanes, inside=False),
            self._map("parts.o", self._at("o", E), columns, inside=False),
        ]

    def _together(self) -> Stmt:
        """All parts of a result; a thread has the maxima and sums of a group of its columns."""
        peak, whole, mix = self._one("peak"), self._one("whole"), self._each("mix")
        sums = self._count(GROUP) * self._of_part("parts.l", const(0))
        weighted = self._count(E // COLUMNS) * self._of_part("parts.o", E)
        share = self._share_of(self._one("whole", E // COLUMNS))
        result = self._stored_result(mix, share, self.plain)
        nests = [
            self._over_parts(peak, "max", self._of_part("parts.m", const(0))),
            self._over_parts(whole, "sum", sums),
            self._over_parts(mix, "sum", weighted, columns=True),
            self._columns("y0", self._point("y0", result, columns=True)),
        ]
        body: Stmt = Seq(tuple(nests))
        for axis, size in reversed(self._axes()):
            body = For(f"all.{axis.name}", size, "serial", body)
        return body

    def _axes(self) -> list[tuple[Var, Expr]]:
        """The rows of the result, and groups of its columns."""
        batch = zip(self.plain, self.p.q[:-2], strict=True)
        return [*batch, (ROW, self.p.q[-2]), (GROUP, simplify(self.p.v[-1] // COLUMNS))]

    def _count(self, group: Expr) -> Expr:
        """How much the weights of a part count."""
        peak = self._one("peak", group)
        found = select(peak.eq(lowest(self.dtype)), const(0, self.dtype), peak)
        return call("exp2_ftz", self._of_part("parts.m", const(0)) - found)

    def _one(self, name: str, group: Expr = GROUP) -> Load:
        """What there is one of for each group of columns."""
        self.own.setdefault(name, Buffer(name, self.dtype, tuple(n for _, n in self._axes())))
        return Load(name, (*self.plain, ROW, group), self.dtype)

    def _each(self, name: str) -> Load:
        """What there is one of for each column."""
        shape = (*self.p.q[:-1], self.p.v[-1])
        self.own.setdefault(name, Buffer(name, self.dtype, shape))
        return Load(name, (*self.plain, ROW, E), self.dtype)

    def _of_part(self, name: str, column: Expr) -> Load:
        return Load(name, (PART, *self.plain, ROW, column), self.dtype)

    def _over_parts(self, target: Load, op: str, term: Expr, columns: bool = False) -> Stmt:
        name = target.buffer
        store = Store(name, target.indices, binary(COMBINED[op], target, term))
        parts = Iter(PART.name, "R", self.parts, Var(f"{name}.{PART.name}"))
        nest = self._point(name, store, columns, [parts], neutral(op, self.dtype))
        nest = self._columns(name, nest) if columns else nest
        return For(f"{name}.{PART.name}", self.parts, "serial", nest)

    def _columns(self, name: str, nest: Stmt) -> Stmt:
        return For(f"{name}.{C.name}", const(COLUMNS), "serial", nest)

    def _point(
        self,
        name: str,
        store: Store,
        columns: bool = False,
        more: Sequence[Iter] = (),
        init: Expr | None = None,
    ) -> Stmt:
        rows, (_, groups) = self._axes()[:-1], self._axes()[-1]
        iters = [Iter(a.name, "S", n, Var(f"all.{a.name}")) for a, n in rows]
        group = Var(f"all.{GROUP.name}")
        if columns:
            column = group * COLUMNS + Var(f"{name}.{C.name}")
            iters.append(Iter(E.name, "S", self.p.v[-1], column))
        else:
            iters.append(Iter(GROUP.name, "S", groups, group))
        start = None if init is None else Store(store.buffer, store.indices, init)
        buffers = {**self.params, **self.own}
        return make_block(name, (*iters, *more), store, start, buffers=buffers)
