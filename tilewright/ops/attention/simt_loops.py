"""The loops of attention in f32 for thread blocks without tensor cores.

    for batch, rows {                          a thread block: 8 rows and 8 keys of each lane
      q[d, i] = queries                        shared, transposed
      m, l, o = -inf, 0, 0                     registers
      for keys {
        work[d, j], v[j, e] = keys, values     shared, keys transposed
        s[i, j] = sum(d) q[d, i] * work[d, j]  registers: 8 x 8 of each thread
        g[i] = max(m[i], max(j) mask(s[i, j])) over the lanes of a row
        s[i, j] = exp(s[i, j] - g[i]);  l, o = those before, rescaled;  m = g
        work[j, i] = s[i, j]                   shared, transposed
        o[i, e] += sum(j) work[j, i] * v[j, e]
      }
      y[i, e] = o[i, e] / sum over lanes of l[i]
    }

Eight lanes share a row, neighbours of one warp. Columns of a lane are vectors of four, those of
neighbouring lanes beside them, so that reads of shared memory have no bank conflicts.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.arith.dtype_limits import lowest
from tilewright.arith.expr import TRUE, Expr, Load, Var, as_int, call, const, maximum, select
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import substitute
from tilewright.core.dtypes import F32
from tilewright.ir.loop.nodes import Buffer, Func, If, Seq, Stmt, Store
from tilewright.ir.loop.walk import substitute_stmt
from tilewright.ops.attention.flash_loops import E, FlashLoops
from tilewright.ops.attention.problem import Problem
from tilewright.ops.attention.score_mods import ROW, J
from tilewright.ops.loop_builder import spatial_block
from tilewright.ops.thread_block import ThreadBlock, at, put

# The lanes of a row, and the rows of each thread.
LANES, ROWS = 8, 8
VECTOR = 4
# Columns of all lanes' vectors; results are padded to a multiple.
GROUP = LANES * VECTOR
# The widest heads that leave threads registers, and two blocks an SM's shared memory.
MAX_COLUMNS = 64
LOG2_E = math.log2(math.e)


def shared_bytes(size: int, columns: int, rows: int, keys: int) -> int:
    """The shared memory of a block with a tile of so many rows and keys."""
    pitch, wide = rows + VECTOR, -(-columns // GROUP) * GROUP
    return F32.bytes * (size * pitch + keys * max(size, pitch) + keys * wide)


def simt_func(problem: Problem) -> Func:
    """The loop function of a `fused_attention` node in a tile of rows and keys."""
    return _Simt(problem).func()


class _Simt(FlashLoops):
    """The nests of a thread block."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.carries = False
        rows, self.keys = self.p.tile
        self.tall = rows
        self.size, columns = (as_int(n) or 0 for n in (self.p.q[-1], self.p.v[-1]))
        self.columns = -(-columns // GROUP) * GROUP
        self.own_keys, self.own_columns = self.keys // LANES, self.columns // LANES
        self.block = block = ThreadBlock("at", rows // ROWS, LANES)
        self.threads = block.rows * block.lanes
        # Rows in shared memory are a vector longer than a multiple of all banks.
        self.pitch = rows + VECTOR
        work = max(self.size * self.keys, self.keys * self.pitch)
        self.queries = block.shared("q", self.dtype, self.size * self.pitch)
        self.work = block.shared("work", self.dtype, work)
        self.values = block.shared("v", self.dtype, self.keys * self.columns)
        self.left = block.register("left", self.dtype, ROWS)
        self.right = block.register("right", self.dtype, max(self.own_keys, self.own_columns))
        self.scores = block.register("s", self.dtype, ROWS * self.own_keys)
        self.results = block.register("o", self.dtype, ROWS * self.own_columns)
        self.held = {n: block.register(n, self.dtype, ROWS) for n in ("m", "p", "g", "f", "l")}
        self.change = block.register("c", self.dtype)

    def func(self) -> Func:
        """Each block of rows is a thread block."""
        extents = (*self.outer, self.row_blocks)

        def body(*index: Expr) -> Stmt:
            *batch, rows = index
            names = {n.name: b for n, b in zip(self.batch, batch, strict=True)}
            if self.p.attrs.window_right >= 0:  # the last rows see most keys
                rows = simplify(self.row_blocks - 1 - rows)
            return substitute_stmt(self._task(), {**names, "at.rows": rows})

        nest = spatial_block("at", extents, body, self.params)
        return self._named(nest)

    def _task(self) -> Stmt:
        steps = self.block.repeat("serial", self._visited(), self._step)
        return self.block.allocated(Seq((self._begin_rows(), steps, self._end())))

    # Loops within a thread.

    def _unrolled(self, count: int, body: Callable[[Expr], Stmt]) -> Stmt:
        return self.block.repeat("unroll", count, body)

    def _vectors(self, count: int, body: Callable[[Expr, Expr], Stmt]) -> Stmt:
        """`body` of a vector's number and of the element within it."""

        def vector(g: Expr) -> Stmt:
            return self.block.repeat("vectorize", VECTOR, lambda w: body(g, w))

        return self._unrolled(count // VECTOR, vector)

    def _dealt(self, count: int, body: Callable[[Expr], Stmt]) -> Stmt:
        """So many vectors, dealt out to all threads; the last ones may be fewer."""
        steps = -(-count // self.threads)

        def each(row: Expr, lane: Expr) -> Stmt:
            def one(step: Expr) -> Stmt:
                number = step * self.threads + row * LANES + lane
                copy = body(number)
                return copy if count % self.threads == 0 else If(number < count, copy)

            return self._unrolled(steps, one)

        return self.block.each(each)

    def _transposed(
        self, to: Buffer, pitch: int, count: int, load: Callable[[Expr, Expr], Expr]
    ) -> Stmt:
        """Rows of queries or keys, transposed: neighbouring threads have neighbouring rows."""

        def copy(number: Expr) -> Stmt:
            row, first = number % count, number // count * VECTOR

            def element(w: Expr) -> Stmt:
                return put(to, load(row, first + w), (first + w) * pitch + row)

            return self.block.repeat("vectorize", VECTOR, element)

        return self._dealt(self.size // VECTOR * count, copy)

    def _row_of(self, number: Expr) -> Expr:
        """A row among all, from its number in the block."""
        return Var("at.rows") * self.tall + number

    # What is done before, in and after the loop over keys.

    def _begin_rows(self) -> Stmt:
        def load(row: Expr, d: Expr) -> Expr:
            line = self._row_of(row)
            return self._operand(0, "q", (line, d), simplify(line < self.p.q[-2]))

        def start(row: Expr, lane: Expr) -> Stmt:
            zero, none = const(0, self.dtype), lowest(self.dtype)
            count = ROWS * self.own_columns
            return Seq(
                (
                    self._unrolled(ROWS, lambda u: put(self.held["m"], none, u)),
                    self._unrolled(ROWS, lambda u: put(self.held["l"], zero, u)),
                    self._unrolled(count, lambda n: put(self.results, zero, n)),
                )
            )

        queries = self._transposed(self.queries, self.pitch, self.tall, load)
        return Seq((queries, self.block.each(start)))

    def _step(self, step: Expr) -> Stmt:
        first = step * self.keys
        stages = [*self._load_keys(first), self.block.each(self._product_of_keys)]
        stages.append(self.block.each(lambda row, lane: self._mask(first, row, lane)))
        for u in range(ROWS):
            peak = maximum(at(self.held["g"], u), at(self.held["p"], u))
            stages.append(self.block.reduced(put(self.held["g"], peak, u)))
        stages += [self.block.each(self._weigh), self.block.each(self._product_of_values)]
        return Seq(tuple(stages))

    def _load_keys(self, first: Expr) -> list[Stmt]:
        def key(row: Expr, d: Expr) -> Expr:
            return self._operand(1, "k", (first + row, d), self._inside(first + row))

        width = self.columns // VECTOR

        def values(number: Expr) -> Stmt:
            row, start = number // width, number % width * VECTOR

            def element(w: Expr) -> Stmt:
                inside = self._inside(first + row)
                if as_int(self.p.v[-1]) != self.columns:
                    inside = inside & (start + w < self.p.v[-1])
                value = self._operand(2, "v", (first + row, start + w), inside)
                return put(self.values, value, row * self.columns + start + w)

            return self.block.repeat("vectorize", VECTOR, element)

        return [
            self._transposed(self.work, self.keys, self.keys, key),
            self._dealt(self.keys * width, values),
        ]

    def _column(self, vector: Expr, element: Expr, lane: Expr) -> Expr:
        """The column of an element of one of a lane's vectors."""
        return vector * GROUP + lane * VECTOR + element

    def _product_of_keys(self, row: Expr, lane: Expr) -> Stmt:
        keys = self.own_keys
        begin = self._unrolled(ROWS * keys, lambda n: put(self.scores, const(0, self.dtype), n))

        def depth(d: Expr) -> Stmt:
            return self._outer_product(
                lambda g, w: at(self.queries, d * self.pitch + row * ROWS + g * VECTOR + w),
                lambda g, w: at(self.work, d * self.keys + self._column(g, w, lane)),
                self.scores,
                keys,
            )

        def some(s: Expr) -> Stmt:
            return self._unrolled(VECTOR, lambda d: depth(s * VECTOR + d))

        return Seq((begin, self.block.repeat("serial", self.size // VECTOR, some)))

    def _product_of_values(self, row: Expr, lane: Expr) -> Stmt:
        columns = self.own_columns

        def key(group: Expr, other: Expr) -> Stmt:
            # Weights are stored by the place of a key in its lane, then by the lane.
            number = group // VECTOR * GROUP + other * VECTOR + group % VECTOR
            place = group * LANES + other
            return self._outer_product(
                lambda g, w: at(self.work, place * self.pitch + row * ROWS + g * VECTOR + w),
                lambda g, w: at(self.values, number * self.columns + self._column(g, w, lane)),
                self.results,
                columns,
            )

        def some(group: Expr) -> Stmt:
            return self._unrolled(LANES, lambda other: key(group, other))

        return self.block.repeat("serial", self.own_keys, some)

    def _outer_product(
        self,
        left: Callable[[Expr, Expr], Expr],
        right: Callable[[Expr, Expr], Expr],
        sums: Buffer,
        count: int,
    ) -> Stmt:
        """Add the products of all rows and columns of a thread."""
        a = self._vectors(ROWS, lambda g, w: put(self.left, left(g, w), g * VECTOR + w))
        b = self._vectors(count, lambda g, w: put(self.right, right(g, w), g * VECTOR + w))

        def one(u: Expr, v: Expr) -> Stmt:
            place = u * count + v
            return put(sums, at(sums, place) + at(self.left, u) * at(self.right, v), place)

        products = self._unrolled(ROWS, lambda u: self._unrolled(count, lambda v: one(u, v)))
        return Seq((a, b, products))

    def _mask(self, first: Expr, row: Expr, lane: Expr) -> Stmt:
        """Scores, and the greatest of each row and thread."""

        def place(u: Expr, v: Expr) -> dict[str, Expr]:
            column = self._column(v // VECTOR, v % VECTOR, lane)
            return {ROW.name: self._row_of(row * ROWS + u), J.name: first + column}

        def score(u: Expr, v: Expr) -> Stmt:
            own = u * self.own_keys + v
            value = self._score(Load("at.s", (Var("at.own"),), self.dtype))
            found = substitute(value, {**place(u, v), "at.own": own})
            peak = maximum(at(self.held["p"], u), at(self.scores, own))
            return Seq((put(self.scores, found, own), put(self.held["p"], peak, u)))

        def line(u: Expr) -> Stmt:
            begin = put(self.held["p"], lowest(self.dtype), u)
            before = put(self.held["g"], at(self.held["m"], u), u)
            return Seq((begin, before, self._unrolled(self.own_keys, lambda v: score(u, v))))

        return self._unrolled(ROWS, line)

    def _weigh(self, row: Expr, lane: Expr) -> Stmt:
        """The weights of the keys, and what was found before rescaled."""
        unit, zero = const(LOG2_E, self.dtype), const(0, self.dtype)
        held, keys = self.held, self.own_keys

        def line(u: Expr) -> Stmt:
            peak = at(held["g"], u)
            floor = select(peak.eq(lowest(self.dtype)), zero, peak)
            count = call("exp2_ftz", (at(held["m"], u) - at(held["f"], u)) * unit)

            def weight(v: Expr) -> Stmt:
                own = u * keys + v
                value = call("exp2_ftz", (at(self.scores, own) - at(held["f"], u)) * unit)
                total = at(held["l"], u) + at(self.scores, own)
                return Seq((put(self.scores, value, own), put(held["l"], total, u)))

            def rescaled(e: Expr) -> Stmt:
                own = u * self.own_columns + e
                return put(self.results, at(self.results, own) * at(self.change), own)

            return Seq(
                (
                    put(held["f"], floor, u),
                    put(self.change, count),
                    put(held["m"], peak, u),
                    put(held["l"], at(held["l"], u) * at(self.change), u),
                    self._unrolled(self.own_columns, rescaled),
                    self._unrolled(keys, weight),
                )
            )

        def store(v: Expr) -> Stmt:
            start = (v * LANES + lane) * self.pitch + row * ROWS

            def element(g: Expr, w: Expr) -> Stmt:
                u = g * VECTOR + w
                return put(self.work, at(self.scores, u * keys + v), start + u)

            return self._vectors(ROWS, element)

        return Seq((self._unrolled(ROWS, line), self._unrolled(keys, store)))

    def _end(self) -> Stmt:
        """The results, divided by the sums that all lanes of a row have found."""
        total, own = self.held["p"], self.held["l"]

        def start(row: Expr, lane: Expr) -> Stmt:
            return self._unrolled(ROWS, lambda u: put(total, const(0, self.dtype), u))

        def write(row: Expr, lane: Expr) -> Stmt:
            return self._unrolled(ROWS, lambda u: self._write(u, row, lane))

        sums = [self.block.reduced(put(total, at(total, u) + at(own, u), u)) for u in range(ROWS)]
        return Seq((self.block.each(start), *sums, self.block.each(write)))

    def _write(self, u: Expr, row: Expr, lane: Expr) -> Stmt:
        line, width = self._row_of(row * ROWS + u), self.p.v[-1]
        share = put(self.change, self._share_of(at(self.held["p"], u)))

        def vector(g: Expr) -> Stmt:
            def element(w: Expr) -> Stmt:
                value = at(self.results, u * self.own_columns + g * VECTOR + w)
                store = self._stored(self._divided(value, at(self.change)), self.batch)
                assert isinstance(store, Store)
                column = self._column(g, w, lane)
                return substitute_stmt(store, {ROW.name: line, E.name: column})

            inside = (
                TRUE if as_int(width) == self.columns else self._column(g, const(0), lane) < width
            )
            stores = self.block.repeat("vectorize", VECTOR, element)
            return stores if inside is TRUE else If(inside, stores)

        every: Stmt = Seq((share, self._unrolled(self.own_columns // VECTOR, vector)))
        whole = (as_int(self.p.q[-2]) or 1) % self.tall == 0
        return every if whole else If(line < self.p.q[-2], every)
