"""The loops of attention for thread blocks: `flash_loops.py` with rows distributed over lanes.

    for batch, rows {
      a[i, d] = queries;  m, l, o = -inf, 0, 0
      for keys {
        kt[j, d], vt[j, e] = keys and values of the block, zero-padded
        x[i, j] = mask(scale * sum(d) a[i, d] * kt[j, d])
        if some of x is masked { mask it }
        p[i, q] = max(z) x[i, j(z, q)]             the columns of one lane
        g[i] = max(q) p[i, q]
        h[i, q] = max(m[i, q], g[i] * k)           k: log2(e), and the scale where possible
        w[i, j] = exp2(x[i, j] * k - h[i, q(j)])
        c[i, q] = exp2(m[i, q] - h[i, q])
        m[i, q] = h[i, q]
        l[i, q] = l[i, q] * c[i, q] + sum(z) w[i, j(z, q)]
        o[i, e] = o[i, e] * c[i, q(e)]
        o[i, e] += sum(j) w[i, j] * vt[j, e]
      }
      r[i, e] = o[i, e] / sum(q) l[i, q]
      z[i, e] = r[i, e]
      y[i, e] = z[i, e]
    }

In an mma fragment four lanes have a row, in pairs of columns. Every lane has its own copy of the
scalars of a row; sums are reduced over lanes after the last block of keys. Results are shuffled
between lanes (`z`), where they fill groups of columns, to be stored in wider vectors.
"""

from __future__ import annotations

import math
from dataclasses import replace

from tilewright.arith.dtype_limits import lowest
from tilewright.arith.expr import (
    TRUE,
    Expr,
    Load,
    Var,
    as_int,
    call,
    cast,
    const,
    maximum,
    minimum,
    select,
)
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import loads
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Buffer, For, Func, Iter, Stmt, Store
from tilewright.ir.loop.walk import substitute_stmt
from tilewright.ops.attention.flash_loops import D, E, FlashLoops
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.score_mods import ROW, J

# The layout of a fragment: pairs of neighbouring columns for each of four lanes, every eight.
LANES, PAIR = 4, 2
STRIDE = LANES * PAIR
# Independent chains of a lane's reduction, to hide latency.
PARTS = PAIR
# The columns that rows of operands are padded to, and the fewest in tiles of several warpgroups.
WIDTHS = (32, 64, 128, 192, 256)
GROUPED_WIDTH, GROUPED_ROWS = 64, 128
# Copies of keys and values, and all operands of the GEMMs.
COPIES = ("kt", "vt")
FACTORS = ("a", "w", "r", "z", *COPIES)
LOG2_E = math.log2(math.e)
# Buffers that live across blocks of keys.
LASTING = ("a", "m", "l", "o", "total", "share", "r", "z", "parts.m", "parts.l", "parts.o")
# Columns that lanes shuffle together.
SHUFFLED = 32

Q, Z, PART, BLOCK = Var("at.q"), Var("at.z"), Var("at.r"), Var("at.b")


def tiled_func(problem: Problem) -> Func:
    """The loop function of a `fused_attention` node with a tile, not yet scheduled."""
    return Tiles(problem).func()


def padded(size: int, rows: int = 0) -> int:
    """The columns of an operand with so many, in a tile of so many rows of queries."""
    least = GROUPED_WIDTH if rows >= GROUPED_ROWS else 0
    return next(width for width in WIDTHS if max(size, least) <= width)


def _lane(column: Expr) -> Expr:
    """The lane that has a column."""
    return column % STRIDE // PAIR


class Tiles(FlashLoops):
    """Collects buffers and nests."""

    def __post_init__(self) -> None:
        attrs = self.p.attrs
        self.unit = LOG2_E
        added = any(t is not None for t in (*self.p.ins[3:4], *self.p.ins[5:6]))
        if attrs.scale > 0 and not attrs.softcap and not added:
            # Nothing is added to scores: they are scaled as their powers are taken.
            self.unit *= attrs.scale
            self.p = replace(self.p, attrs=replace(attrs, scale=1.0))
        super().__post_init__()
        self.carries = True
        sizes = as_int(self.p.q[-1]), as_int(self.p.v[-1])
        self.deep, self.wide = (const(padded(n, self.p.row_block)) for n in sizes if n is not None)

    def _ordered(self, task: Stmt) -> Stmt:
        """Under a band the last rows see most keys, so they come first."""
        if self.p.attrs.window_right < 0:
            return task
        last = simplify(self.row_blocks - 1 - Var("at.rows"))
        return substitute_stmt(task, {"at.rows": last})

    def _rows_here(self) -> Expr:
        return self.rows

    def _keys_here(self) -> Expr:
        return self.width

    # Rows and columns are the last two dimensions: those of a tile.

    def _index(self, name: str, *index: Expr) -> tuple[Expr, ...]:
        block = () if name in LASTING else (Var("at.k"),)
        return (*self.batch, *block, *index)

    def _at(self, name: str, *index: Expr) -> Load:
        return Load(name, self._index(name, ROW, *index), self.own[name].dtype)

    def _new(self, name: str, *tail: Expr) -> None:
        self._make(name, self.padded_rows, *tail)

    def _make(self, name: str, *tail: Expr) -> None:
        block = () if name in LASTING else (self.key_blocks,)
        dtype = self.factor if name in FACTORS else self.dtype
        self.own[name] = Buffer(name, dtype, (*self.outer, *block, *tail))

    def _blocks(self, store: Store) -> list[Iter]:
        """Each block of rows has copies of its own."""
        copied = store.buffer in COPIES or any(x.buffer in COPIES for x in loads(store.value))
        rows = Iter(BLOCK.name, "S", self.row_blocks, Var("at.rows"))
        return [*super()._blocks(store), rows] if copied else super()._blocks(store)

    def _begin(self) -> list[Stmt]:
        """The queries of a block, and what the first block of keys finds."""
        lanes = (Q, const(LANES))
        size = as_int(self.p.q[-1])
        inside = TRUE if as_int(self.deep) == size else D < self.p.q[-1]
        if not prove(self.padded_rows.eq(self.p.q[-2])):
            inside = (ROW < self.p.q[-2]) & inside
        query = self._operand(0, "q", (ROW, D), inside)
        zero = const(0, self.dtype)
        return [
            self._map("a", query, (D, self.deep), inside=False),
            self._map("m.first", lowest(self.dtype), lanes, to="m", inside=False),
            self._map("l.first", zero, lanes, to="l", inside=False),
            self._map("o.first", zero, (E, self.wide), to="o", inside=False),
        ]

    def _copy_tile(self, name: str, number: int, column: Var, size: Expr, filled: Expr) -> Stmt:
        """The rows of keys or values of a block."""
        key = Var("at.k") * self.width + J
        inside = self._inside(key)
        inside = inside if size is filled else inside & (column < size)
        operand = "k" if name == "kt" else "v"
        value = self._operand(number, operand, (key, column), inside)
        self._make(name, self.row_blocks, self.width, filled)
        iters = [
            Iter(n.name, "S", size, Var(f"batch.{n.name}"))
            for n, size in zip(self.batch, self.outer, strict=True)
        ]
        axes = ((J, self.width), (column, filled))
        store = Store(name, self._index(name, BLOCK, J, column), value)
        iters += self._blocks(store)
        iters += [Iter(a.name, "S", n, Var(f"{name}.{a.name}")) for a, n in axes]
        nest: Stmt = make_block(name, tuple(iters), store, buffers={**self.params, **self.own})
        for a, n in reversed(axes):
            nest = For(f"{name}.{a.name}", n, "serial", nest)
        return nest

    def _block_stages(self) -> list[Stmt]:
        keys, columns = (J, self.width), (E, self.wide)
        lanes = (Q, const(LANES))
        stages = [
            self._copy_tile("kt", 1, D, self.p.q[-1], self.deep),
            self._copy_tile("vt", 2, E, self.p.v[-1], self.wide),
        ]
        scores = self._product(self._at("a", D), self._tile_at("kt", J, D))
        stages += self._multiply("s", scores, (D, self.deep), keys)
        stages += self._scores(keys)
        stages += self._of_lane("p", "max", "x")
        stages.append(self._reduce("g", "max", self._at("p", Q), lanes))
        stages += self._carry_peaks(lanes)
        unit = const(self.unit, self.dtype)
        weight = call("exp2_ftz", self._at("x", J) * unit - self._at("f", _lane(J)))
        stages.append(self._map("e", weight, keys))
        stages += self._of_lane("t", "sum", "e")
        total = self._at("l", Q) * self._at("c", Q) + self._at("t", Q)
        stages.append(self._map("l", total, lanes))
        stages.append(self._map("w", cast(self.factor, self._at("e", J)), keys))
        before = self._at("o", E) * self._at("c", _lane(E))
        stages.append(self._map("o.before", before, columns, to="o"))
        values = self._product(self._at("w", J), self._tile_at("vt", J, E))
        old = self._at("o", E)
        axes = [(E, "S", self.wide), (J, "R", self.width)]
        stages.append(self._nest("o", axes, Store("o", old.indices, old + values)))
        return stages

    def _of_lane(self, name: str, op: str, source: str) -> list[Stmt]:
        """What all elements of a lane combine to, first every second one with its like."""
        lanes, parts = (Q, const(LANES)), (PART, const(PARTS))
        own = (Z, self.width // (LANES * PARTS))
        place = Z * STRIDE + Q * PAIR + PART
        several = f"{name}.part"
        first = self._reduce(several, op, self._at(source, place), own, lanes, parts)
        return [first, self._reduce(name, op, self._at(several, Q, PART), parts, lanes)]

    def _scores(self, keys: tuple[Var, Expr]) -> list[Stmt]:
        """Scores; where all of a block are seen, none is looked at again."""
        score = self._score(self._at("s", J))
        visible = self._score(self._at("s", J), hides=False)
        if score is visible or self.p.attrs.bottom_right:
            return [self._map("x", score, keys)]
        plain = self._map("x", visible, keys)
        hidden = self._map("x.hidden", self._hidden(self._at("x", J)), keys, to="x")
        return [plain, For("x.edge", self._at_edge(), "serial", hidden)]

    def _at_edge(self) -> Expr:
        """One if some key of a block is not seen by some of its rows, else zero."""
        attrs, keys, rows = self.p.attrs, self.p.k[-2], self.p.q[-2]
        first, row = self._block() * self.width, Var("at.rows") * self.rows
        last = first + self.width
        beyond = [] if self._inside(J) is TRUE else [last - keys]
        if attrs.window_right >= 0:
            beyond.append(last - 1 - (row + attrs.offset + attrs.window_right))
        if attrs.window_left >= 0:
            lowest_row = minimum(row + self.rows, rows) - 1
            beyond.append(lowest_row + attrs.offset - attrs.window_left - first)
        most = beyond[0]
        for other in beyond[1:]:
            most = maximum(most, other)
        return simplify(maximum(const(0), minimum(const(1), most)))

    def _tile_at(self, name: str, *index: Expr) -> Load:
        return Load(name, self._index(name, BLOCK, *index), self.factor)

    def _carry_peaks(self, lanes: tuple[Var, Expr]) -> list[Stmt]:
        peak = self._at("g") * const(self.unit, self.dtype)
        stages = [self._map("h", maximum(self._at("m", Q), peak), lanes)]
        found = self._at("h", Q)
        # Where all is hidden zero is subtracted, so that nothing becomes NaN.
        floor = select(found.eq(lowest(self.dtype)), const(0, self.dtype), found)
        stages.append(self._map("f", floor, lanes))
        count = call("exp2_ftz", self._at("m", Q) - self._at("f", Q))
        stages.append(self._map("c", count, lanes))
        stages.append(self._map("m", found, lanes))
        return stages

    def _finish(self) -> list[Stmt]:
        lanes = (Q, const(LANES))
        total = self._reduce("total", "sum", self._at("l", Q), lanes, inside=False)
        share = self._map("share", self._share_of(self._at("total")), lanes, inside=False)
        found = self._at("o", E), self._at("share", _lane(E))
        width = as_int(self.p.v[-1]) or 0
        if width % SHUFFLED:
            return [total, share, self._result(*found)]
        columns = (E, self.wide)
        rounded = self._map("r", self._divided(*found), columns, inside=False)
        handed = self._map("z", self._at("r", E), columns, inside=False)
        store = self._stored(self._at("z", E), self.batch)
        written = self._nest("y0", [(E, "S", self.p.v[-1])], store, inside=False)
        return [total, share, rounded, handed, written]
