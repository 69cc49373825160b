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

PART = Var("at.part")
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
        return Func("fused_attention", tuple(self.params.values()), ("y0",), body)

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
        """All parts of a result."""
        peak = self._one("peak")
        found = select(peak.eq(lowest(self.dtype)), const(0, self.dtype), peak)
        counts = call("exp2_ftz", self._of_part("parts.m", const(0)) - found)
        mix, total = self._one("mix"), self._one("whole")
        result = self._stored_result(mix, self._share_of(total), self.plain)
        nests = [
            self._over_parts("peak", "max", self._of_part("parts.m", const(0))),
            self._over_parts("whole", "sum", counts * self._of_part("parts.l", const(0))),
            self._over_parts("mix", "sum", counts * self._of_part("parts.o", E)),
            self._point("y0", result),
        ]
        body: Stmt = Seq(tuple(nests))
        for axis, size in reversed(self._axes()):
            body = For(f"all.{axis.name}", size, "serial", body)
        return body

    def _axes(self) -> list[tuple[Var, Expr]]:
        """The dimensions of the result."""
        batch = zip(self.plain, self.p.q[:-2], strict=True)
        return [*batch, (ROW, self.p.q[-2]), (E, self.p.v[-1])]

    def _one(self, name: str) -> Load:
        """What there is one of for each point of the result."""
        if name not in self.own:
            self.own[name] = Buffer(name, self.dtype, tuple(size for _, size in self._axes()))
        return Load(name, tuple(axis for axis, _ in self._axes()), self.dtype)

    def _of_part(self, name: str, column: Expr) -> Load:
        return Load(name, (PART, *self.plain, ROW, column), self.dtype)

    def _over_parts(self, name: str, op: str, term: Expr) -> Stmt:
        target = self._one(name)
        store = Store(name, target.indices, binary(COMBINED[op], target, term))
        parts = Iter(PART.name, "R", self.parts, Var(f"{name}.{PART.name}"))
        nest = self._point(name, store, [parts], neutral(op, self.dtype))
        return For(f"{name}.{PART.name}", self.parts, "serial", nest)

    def _point(
        self, name: str, store: Store, more: Sequence[Iter] = (), init: Expr | None = None
    ) -> Stmt:
        iters = [Iter(a.name, "S", n, Var(f"all.{a.name}")) for a, n in self._axes()]
        start = None if init is None else Store(store.buffer, store.indices, init)
        buffers = {**self.params, **self.own}
        return make_block(name, (*iters, *more), store, start, buffers=buffers)
