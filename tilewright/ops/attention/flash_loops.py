"""The loops of FlashAttention: for a block of queries, iterate over blocks of keys.

    kt[d, j], vt[j, e] = keys and values, zero-padded
    for batch, rows {
      for keys {                                   m, l, o: -inf, 0, 0 before the first block
        x[i, j] = mask(scale * sum(d) q[i, d] * kt[d, j])
        p[i] = max(m[i], max(j) x[i, j])
        w[i, j] = exp(x[i, j] - p[i])
        c[i] = exp(m[i] - p[i])                    rescales the running sums
        l[i] = l[i] * c[i] + sum(j) w[i, j]
        o[i, e] = o[i, e] * c[i] + sum(j) w[i, j] * vt[j, e]
        m[i] = p[i]
      }
      y[i, e] = o[i, e] / l[i]
    }

This is online softmax: scores exist for one block of queries and keys at a time, whatever the
lengths. With a single block of keys nothing is rescaled. Blocks of keys to the right of the sliding
window are skipped. A fully masked row keeps a sum of 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tilewright.arith.dtype_limits import lowest, neutral
from tilewright.arith.expr import (
    TRUE,
    Expr,
    Load,
    Var,
    as_int,
    binary,
    call,
    cast,
    ceildiv,
    const,
    maximum,
    minimum,
    select,
)
from tilewright.arith.simplify import prove, simplify
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Iter, Seq, Stmt, Store
from tilewright.ir.types import Shape
from tilewright.ops.attention.problem import KEY_STEP, ROW_STEP, VECTOR_STEP, Problem
from tilewright.ops.attention.score_mods import ROW, J, Scores
from tilewright.ops.op import broadcast_index

# Buffers that are carried from one block of keys to the next, and what is made of them last.
CARRIED = ("m", "l", "o", "share")

# Buffers that have no more rows than there are queries: the result, or parts of it.
WRITTEN = ("y0", "parts.o")

# Buffers of what is multiplied: queries, where they are rounded, and weights.
FACTORS = ("a", "w")

D, E = Var("at.d"), Var("at.e")


def flash_attention_func(problem: Problem) -> Func:
    """The loop function of a `fused_attention` node, not yet scheduled."""
    return FlashLoops(problem).func()


@dataclass
class FlashLoops(Scores):
    """Collects buffers and nests."""

    p: Problem
    own: dict[str, Buffer] = field(default_factory=dict)

    def __post_init__(self) -> None:
        p = self.p
        named = [(f"x{n}", t) for n, t in enumerate(p.ins) if t is not None]
        self.params = {name: Buffer(name, t.dtype, t.shape) for name, t in named}
        self.params["y0"] = Buffer("y0", p.out.dtype, p.out.shape)
        self.dtype = p.dtype
        self.factor = p.factor_dtype
        self.batch = tuple(Var(f"at.n{d}") for d in range(len(p.q) - 2))
        self.plain = self.batch
        self.outer = p.q[:-2]
        self.rows = const(p.row_block)
        self.width = const(p.key_block)
        self.row_blocks = simplify(ceildiv(p.q[-2], p.row_block))
        # At least one, which gives sums of nothing their value where there are no keys.
        self.key_blocks = simplify(maximum(ceildiv(p.k[-2], p.key_block), const(1)))
        self.padded_rows = simplify(self.row_blocks * self.rows)
        self.carries = as_int(self.key_blocks) != 1

    def func(self) -> Func:
        """Copies of keys and values, then the loop over batches and rows."""
        copies = [self._copy_keys(), self._copy_values()] if self.p.packs else []
        body: Stmt = Seq((*copies, self._tasks()))
        for buffer in reversed(self.own.values()):
            body = Alloc(buffer, body)
        return self._named(body)

    def _named(self, body: Stmt) -> Func:
        return Func("fused_attention", tuple(self.params.values()), ("y0",), body)

    def _tasks(self) -> Stmt:
        begin, stages = self._begin(), self._block_stages()
        parts: list[Stmt] = stages
        if self.carries:
            parts = [For("at.keys", self._visited(), "serial", Seq(tuple(stages)))]
        every = self._ordered(Seq((*begin, *parts, *self._finish())))
        task: Stmt = For("at.rows", self.row_blocks, "serial", every)
        for n, size in reversed(tuple(zip(self.batch, self.outer, strict=True))):
            task = For(f"batch.{n.name}", size, "serial", task)
        return task

    def _ordered(self, task: Stmt) -> Stmt:
        """What is done with one block of rows, in the order in which they are gone through."""
        return task

    def _begin(self) -> list[Stmt]:
        """What comes before the first block of keys."""
        return []

    def _visited(self) -> Expr:
        """How many blocks of keys some row of a block of rows can see; the first in any case."""
        attrs = self.p.attrs
        if attrs.window_right < 0 or attrs.bottom_right:
            return self.key_blocks
        last = Var("at.rows") * self.rows + (self.rows - 1) + attrs.offset + attrs.window_right
        seen = maximum(const(1), (last + self.width) // self.width)
        return simplify(minimum(self.key_blocks, seen))

    def _rows_here(self) -> Expr:
        """How many rows of a block are computed, up to the last there is."""
        if as_int(self.p.q[-2]) is not None:
            return self.rows
        left = self.p.q[-2] - Var("at.rows") * self.rows
        steps = minimum(self.p.row_block // ROW_STEP, ceildiv(left, ROW_STEP))
        return simplify(steps * ROW_STEP)

    def _keys_here(self) -> Expr:
        """How many keys of a block are computed, up to the last there is."""
        if as_int(self.p.k[-2]) is not None:
            return self.width
        left = maximum(self.p.k[-2] - Var("at.keys") * self.width, const(1))
        steps = minimum(self.p.key_block // KEY_STEP, ceildiv(left, KEY_STEP))
        return simplify(steps * KEY_STEP)

    # What is stored where: buffers are indexed by batch, row and block of keys, which says what an
    # element belongs to; no more of them exists at a time than what one block uses.

    def _at(self, name: str, *index: Expr) -> Load:
        """An element of row `i`, in the block of keys at hand."""
        block = (Var("at.k"),) if self.carries and name not in CARRIED else ()
        return Load(name, (*self.batch, ROW, *block, *index), self.own[name].dtype)

    def _new(self, name: str, *tail: Expr) -> None:
        block = (self.key_blocks,) if self.carries and name not in CARRIED else ()
        shape = (*self.outer, self.padded_rows, *block, *tail)
        dtype = self.factor if name in FACTORS else self.dtype
        self.own[name] = Buffer(name, dtype, shape)

    def _operand(self, number: int, operand: str, index: Sequence[Expr], mask: Expr) -> Expr:
        buffer = self.params[f"x{number}"]
        shape = getattr(self.p, operand)
        outer = broadcast_index(shape[:-2], self.batch)
        stored = self.p.stored(operand, (*outer, *index))
        load = Load(buffer.name, stored, buffer.dtype, None if mask is TRUE else mask)
        return cast(self.factor, load)

    def _nest(
        self,
        name: str,
        axes: Sequence[tuple[Var, str, Expr]],
        store: Store,
        init: Expr | None = None,
        inside: bool = True,
    ) -> Stmt:
        """Loops over rows and `axes`, within the loop over keys where `inside`."""
        used = [
            Iter(n.name, "S", size, Var(f"batch.{n.name}"))
            for n, size in zip(self.batch, self.outer, strict=True)
        ]
        row = Var("at.rows") * self.rows + Var(f"{name}.{ROW.name}")
        limit = self.p.q[-2] if store.buffer in WRITTEN else self.padded_rows
        used.append(Iter(ROW.name, "S", limit, row))
        used += self._blocks(store) if inside else []
        used += [Iter(a.name, kind, n, Var(f"{name}.{a.name}")) for a, kind, n in axes]
        start = None if init is None else Store(store.buffer, store.indices, init)
        beyond = store.buffer in WRITTEN and not prove(self.padded_rows.eq(limit))
        predicate = row < limit if beyond else TRUE
        buffers = {**self.params, **self.own}
        nest: Stmt = make_block(name, tuple(used), store, start, predicate, buffers=buffers)
        for a, _, n in reversed(axes):
            count = self._keys_here() if a is J else n
            nest = For(f"{name}.{a.name}", count, "serial", nest)
        # Formulas on rows are few: they run on all of a block, whole vectors.
        return For(f"{name}.{ROW.name}", self._rows_here() if axes else self.rows, "serial", nest)

    def _blocks(self, store: Store) -> list[Iter]:
        """What numbers blocks in a nest within the loop over keys."""
        return [Iter("at.k", "S", self.key_blocks, self._block())] if self.carries else []

    def _block(self) -> Expr:
        """The number of the block of keys at hand."""
        return Var("at.keys")

    def _map(
        self,
        name: str,
        value: Expr,
        *axes: tuple[Var, Expr],
        to: str = "",
        inside: bool = True,
    ) -> Stmt:
        """`to[i, axes] = value`; the buffer is called like the nest unless given."""
        buffer = to or name
        if buffer not in self.own:
            self._new(buffer, *(n for _, n in axes))
        target = self._at(buffer, *(a for a, _ in axes))
        store = Store(buffer, target.indices, value)
        return self._nest(name, [(a, "S", n) for a, n in axes], store, inside=inside)

    def _reduce(
        self,
        name: str,
        op: str,
        term: Expr,
        over: tuple[Var, Expr],
        *axes: tuple[Var, Expr],
        inside: bool = True,
    ) -> Stmt:
        self._new(name, *(n for _, n in axes))
        target = self._at(name, *(a for a, _ in axes))
        combine = {"sum": "add", "max": "max"}[op]
        store = Store(name, target.indices, binary(combine, target, term))
        every = [*((a, "S", n) for a, n in axes), (over[0], "R", over[1])]
        return self._nest(name, every, store, neutral(op, self.dtype), inside)

    # The stages.

    def _copy(self, name: str, index: Sequence[Var], sizes: Shape, value: Expr) -> Stmt:
        shape = getattr(self.p, "k" if name == "kt" else "v")[:-2]
        batch = [(n, size) for n, size in zip(self.batch, shape, strict=True)]
        kept = [(n, s) for n, s in batch if s is not const(1)]
        self.own[name] = Buffer(name, self.factor, (*(s for _, s in kept), *sizes))
        axes = [*kept, *zip(index, sizes, strict=True)]
        iters = tuple(Iter(a.name, "S", n, Var(f"{name}.{a.name}")) for a, n in axes)
        store = Store(name, tuple(a for a, _ in axes), value)
        nest: Stmt = make_block(name, iters, store, buffers={**self.params, **self.own})
        for a, n in reversed(axes):
            nest = For(f"{name}.{a.name}", n, "serial", nest)
        return nest

    def _copied(self, name: str, *index: Expr) -> Expr:
        shape = (self.p.k if name == "kt" else self.p.v)[:-2]
        kept = [n for n, s in zip(self.batch, shape, strict=True) if s is not const(1)]
        return Load(name, (*kept, *index), self.factor)

    def _copied_keys(self) -> Expr:
        """How many keys are copied: whole steps, so that few keys cost little."""
        if as_int(self.p.k[-2]) is not None:
            return simplify(self.key_blocks * self.width)
        return simplify(ceildiv(maximum(self.p.k[-2], const(1)), KEY_STEP) * KEY_STEP)

    def _copy_keys(self) -> Stmt:
        padded = self._copied_keys()
        value = self._operand(1, "k", (J, D), self._inside(J))
        return self._copy("kt", (D, J), (self.p.k[-1], padded), value)

    def _copy_values(self) -> Stmt:
        padded = self._copied_keys()
        value = self._operand(2, "v", (J, E), self._inside(J))
        return self._copy("vt", (J, E), (padded, self.p.v[-1]), value)

    def _keys_at(self) -> Expr:
        if self.p.packs:
            return self._copied("kt", D, self._key())
        inside = self._inside(self._key()) & self._in_size()
        return self._operand(1, "k", (self._key(), D), simplify(inside))

    def _product_size(self) -> Expr:
        """What queries and keys are summed over: whole vectors where keys are read in place."""
        size = self.p.q[-1]
        if self.p.packs or self.p.tile:
            return size
        return simplify(ceildiv(size, VECTOR_STEP) * VECTOR_STEP)

    def _in_size(self) -> Expr:
        """Whether an element of a query is one."""
        return TRUE if self._product_size() is self.p.q[-1] else D < self.p.q[-1]

    def _values_at(self) -> Expr:
        if self.p.packs:
            return self._copied("vt", self._key(), E)
        return self._operand(2, "v", (self._key(), E), self._inside(self._key()))

    def _so_far(self, name: str, start: Expr, *index: Expr) -> Expr:
        """What the block of keys before has left; at first `start`."""
        return select(Var("at.k").eq(0), start, self._at(name, *index))

    def _block_stages(self) -> list[Stmt]:
        keys, columns = (J, self.width), (E, self.p.v[-1])
        query = self._operand(0, "q", (self._row(), D), self._in_size())
        size = (D, self._product_size())
        stages: list[Stmt] = []
        if self.p.attrs.bf16_operands:
            stages.append(self._map("a", query, size))
            query = self._at("a", D)
        stages += self._multiply("s", self._product(query, self._keys_at()), size, keys)
        stages.append(self._map("x", self._score(self._at("s", J)), keys))
        stages.append(self._reduce("p", "max", self._at("x", J), keys))
        stages += self._carry_peak() if self.carries else [self._floor("p")]
        weight = call("exp_ftz", self._at("x", J) - self._at("f"))
        stages.append(self._map("w", cast(self.factor, weight), keys))
        stages.append(self._reduce("t", "sum", cast(self.dtype, self._at("w", J)), keys))
        stages.append(self._carry_sum() if self.carries else self._share("t"))
        product = self._product(self._at("w", J), self._values_at())
        stages += self._multiply("u", product, keys, columns)
        if self.carries:
            self._new("o", self.p.v[-1])
            before = self._so_far("o", const(0, self.dtype), E) * self._at("c")
            stages.append(self._map("o", before + self._at("u", E), columns))
        return stages

    def _multiply(
        self, name: str, term: Expr, over: tuple[Var, Expr], axis: tuple[Var, Expr]
    ) -> list[Stmt]:
        """The nests of a product; sums in the registers of a matrix unit are copied out of them."""
        if not self.p.attrs.bf16_operands:
            return [self._reduce(name, "sum", term, over, axis)]
        held = f"{name}.unit"
        sums = self._reduce(held, "sum", term, over, axis)
        return [sums, self._map(name, self._at(held, axis[0]), axis)]

    def _product(self, x: Expr, y: Expr) -> Expr:
        """A product, as wide as the sum it is added to: of f16 it is formed in f16."""
        if self.p.attrs.f16_accumulate:
            return cast(self.dtype, x * y)
        return cast(self.dtype, x) * cast(self.dtype, y)

    def _floor(self, peak: str) -> Stmt:
        """The peak to subtract: where all is hidden zero, so that nothing becomes NaN."""
        found = self._at(peak)
        zero = const(0, self.dtype)
        return self._map("f", select(found.eq(lowest(self.dtype)), zero, found))

    def _carry_peak(self) -> list[Stmt]:
        self._new("m")
        before = self._so_far("m", lowest(self.dtype))
        return [
            self._map("g", maximum(before, self._at("p"))),
            self._floor("g"),
            self._map("c", call("exp_ftz", before - self._at("f"))),
            self._map("m", self._at("g")),
        ]

    def _carry_sum(self) -> Stmt:
        self._new("l")
        before = self._so_far("l", const(0, self.dtype))
        return self._map("l", before * self._at("c") + self._at("t"))

    def _share(self, total: str) -> Stmt:
        return self._map("share", self._share_of(self._at(total)), inside=False)

    def _share_of(self, total: Expr) -> Expr:
        """What each of a row's weights counts."""
        one, zero = const(1, self.dtype), const(0, self.dtype)
        # A row of nothing but hidden keys has no sum; without any keys it is a sum of nothing.
        hidden = total.eq(zero) if self.p.attrs.fully_masked != "nan" else self.p.k[-2].eq(0)
        return one / select(simplify(hidden), one, total)

    def _finish(self) -> list[Stmt]:
        shares = [self._share("l")] if self.carries else []
        value = self._at("o" if self.carries else "u", E)
        return [*shares, self._result(value, self._at("share"))]

    def _result(self, value: Expr, share: Expr) -> Stmt:
        """The nest that stores the weighted values, normalized by the sum of each row."""
        store = self._stored_result(value, share, self.batch)
        return self._nest("y0", [(E, "S", self.p.v[-1])], store, inside=False)

    def _stored_result(self, value: Expr, share: Expr, batch: Sequence[Expr]) -> Store:
        return self._stored(self._divided(value, share), batch)

    def _divided(self, value: Expr, share: Expr) -> Expr:
        """The weighted values of a row, normalized, as they are stored."""
        value = value * share
        if self.p.attrs.fully_masked == "finite":
            value = select(share.eq(share), value, const(0, self.dtype))
        return cast(self.p.out.dtype, value)

    def _stored(self, value: Expr, batch: Sequence[Expr]) -> Store:
        perm = self.p.attrs.y_perm
        index = (*batch, ROW, E)
        return Store("y0", tuple(index[d] for d in perm) if perm else index, value)
