"""The greatest or least elements of rows on a GPU: the lanes of a row find them together.

    held = keys of the row's elements               registers, 16 bytes at a time, read once
    peak[group] = max of the keys of some lanes     as many groups as there are wanted elements
    bound = the k-th greatest peak                  at least k elements are as great
    place, count = scan of how many elements of a lane are
    if count > ROOM { bound = the k-th greatest key, bit by bit; of equal ones the first }
    candidates[place ...] = the elements from the bound on
    rank = how many candidates precede one          those of rank < k go to y[rank]

Keys are integers of the same order (`sort_keys.py`); of equal ones the lower index comes first.
Most rows have few candidates more than wanted elements. Where one has too many, as equal elements
do, the block finds exactly those that are wanted: each bit takes a pass over the registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.arith.expr import (
    TRUE,
    Expr,
    Load,
    as_int,
    cast,
    ceildiv,
    const,
    maximum,
    minimum,
    select,
)
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I32, I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Func, If, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import WARP_SIZE
from tilewright.ir.types import TensorType
from tilewright.ops.loop_builder import parameters, spatial_block
from tilewright.ops.op import Op, fail
from tilewright.ops.tensor.sort_keys import SortKeys
from tilewright.ops.thread_block import ThreadBlock, at, put

# The candidates that there is room for: of so many wanted elements as many more, or a few.
ROOM_FACTOR, MIN_ROOM = 4, 128


@node
class TopKRowsAttrs(Attrs):
    """How many elements, and how: `lanes` threads a row, `rows` of them in a thread block.

    A thread has `steps` vectors of `width` elements. Where there is a `part`, rows are cut into
    parts of so many elements, each of which is a row of the results.
    """

    k: int
    lanes: int
    rows: int
    steps: int
    width: int
    largest: bool = True
    part: int = 0


def _type(attrs: TopKRowsAttrs, ins: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
    x = ins[0]
    length = as_int(x.shape[1]) if x.rank == 2 else None
    if length is None or x.dtype.kind not in ("int", "uint", "float"):
        raise fail("topk_rows", f"{x} has no rows of so many numbers", "use rank 2")
    held = attrs.lanes * attrs.steps * attrs.width
    part = attrs.part or length
    parts = -(-length // part)
    if not 0 < attrs.k <= length - (parts - 1) * part or part > held:
        raise fail("topk_rows", f"{attrs.k} elements of {x}, of which a block holds {held}")
    if length % attrs.width or part % attrs.width:
        raise fail("topk_rows", f"rows of {x} are no vectors of {attrs.width}")
    shape = (simplify(x.shape[0] * parts), const(attrs.k))
    return TensorType(x.dtype, shape), TensorType(I64, shape)


class _Selection:
    """The nests of a thread block, which begins at row `first`."""

    def __init__(self, attrs: TopKRowsAttrs, x: TensorType, first: Expr) -> None:
        self.a, self.x, self.first = attrs, x, first
        self.whole = as_int(x.shape[1]) or 0
        # Rows from here on are parts, where there are any.
        self.length = attrs.part or self.whole
        self.parts = -(-self.whole // self.length)
        self.count_of_rows = simplify(x.shape[0] * self.parts)
        self.keys = SortKeys(x.dtype, attrs.largest)
        self.held_count = attrs.steps * attrs.width
        self.room = min(_power(self.length), max(MIN_ROOM, ROOM_FACTOR * _power(attrs.k)))
        self.block = b = ThreadBlock("at", attrs.rows, attrs.lanes)
        self.least = const(self.keys.least, self.keys.dtype)
        self.raw = b.register("raw", x.dtype, self.held_count)
        self.held = b.register("held", self.keys.dtype, self.held_count)
        self.bound = b.register("bound", self.keys.dtype)
        # Of elements equal to the bound, those up to this one are candidates.
        self.last = b.register("last", I32)
        self.own = b.register("own", I32)
        self.place = b.register("place", I32)
        self.count = b.register("count", I32)
        self.most = b.register("most", I32)
        self.candidate = b.shared("candidate", self.keys.dtype, attrs.rows * self.room)
        self.index = b.shared("index", I32, attrs.rows * self.room)

    def stmt(self) -> Stmt:
        """What the block does."""
        stages = [self._load()]
        stages += self._bound() if self._is_bounded() else [self._everything()]
        if self.keys.has_free_least:
            stages += self._counted(lambda row, lane, e: at(self.bound) <= at(self.held, e))
        else:
            stages += self._counted(self._is_wanted)
        if self.length > self.room:
            stages += self._exact_if_many()
        stages += [self._collect(), self._write()]
        return self.block.allocated(Seq(tuple(stages)))

    # The row in registers.

    def _each(self, body: Callable[[Expr, Expr, Expr], Stmt]) -> Stmt:
        """Something for each element of each thread."""

        def thread(row: Expr, lane: Expr) -> Stmt:
            return self.block.repeat("unroll", self.held_count, lambda e: body(row, lane, e))

        return self.block.each(thread)

    def _index(self, lane: Expr, e: Expr) -> Expr:
        """The index of an element of a thread: vectors of all lanes lie side by side."""
        width = self.a.width
        return (e // width * self.a.lanes + lane) * width + e % width

    def _line(self, row: Expr) -> tuple[Expr, Expr]:
        """The row of memory that a row is in, and where it begins there."""
        number = self.first + row
        if self.parts == 1:
            return number, const(0)
        return number // self.parts, number % self.parts * self.length

    def _is_inside(self, first: Expr, index: Expr) -> Expr:
        """Whether there is an element of a row, which begins at `first`."""
        inside = index < self.length
        return inside if self.parts == 1 else inside & (first + index < self.whole)

    def _has(self, row: Expr) -> Expr:
        return self.first + row < self.count_of_rows

    def _load(self) -> Stmt:
        a = self.a
        full = a.lanes * self.held_count == self.length == self.whole // self.parts

        def vector(row: Expr, lane: Expr, step: Expr) -> Stmt:
            within = (step * a.lanes + lane) * a.width
            line, first = self._line(row)
            inside = TRUE if full else self._is_inside(first, within)
            inside = inside if a.rows == 1 else inside & self._has(row)
            start, mask = first + within, None if inside is TRUE else inside

            def load(v: Expr) -> Stmt:
                found = Load("x0", (line, start + v), self.x.dtype, mask)
                return put(self.raw, found, step * a.width + v)

            return self.block.repeat("vectorize", a.width, load)

        def read(row: Expr, lane: Expr) -> Stmt:
            return self.block.repeat("unroll", a.steps, lambda step: vector(row, lane, step))

        def key(row: Expr, lane: Expr, e: Expr) -> Stmt:
            found = self.keys.of(at(self.raw, e))
            if not full:
                inside = self._is_inside(self._line(row)[1], self._index(lane, e))
                found = select(inside, found, self.least)
            return put(self.held, found, e)

        return Seq((self.block.each(read), self._each(key)))

    # A bound that at least k elements reach.

    def _is_bounded(self) -> bool:
        return self.a.lanes >= self.a.k and self.length > self.a.lanes

    def _everything(self) -> Stmt:
        """All elements are candidates."""
        return self.block.each(lambda row, lane: self._bounded(row, self.least))

    def _bounded(self, row: Expr, bound: Expr) -> Stmt:
        """Let a bound be known, of which all elements are candidates that there are."""
        if self.keys.has_free_least:
            bound = maximum(bound, const(self.keys.least + 1, bound.dtype))
        end: Expr = const(self.length - 1)
        if self.parts > 1:
            end = minimum(end, const(self.whole - 1) - self._line(row)[1])
        return Seq((put(self.bound, bound), put(self.last, cast(I32, end))))

    def _bound(self) -> list[Stmt]:
        """The k-th greatest of the maxima of groups of lanes."""
        a, b = self.a, self.block
        groups = max(min(a.lanes, WARP_SIZE), min(a.lanes, 2 * _power(a.k)))
        size = a.lanes // groups
        peak = b.register("peak", self.keys.dtype)
        top = b.register("top", self.keys.dtype)
        rank = b.register("rank", I32)
        peaks = b.shared("peaks", self.keys.dtype, a.rows * groups)
        bounds = b.shared("bounds", self.keys.dtype, a.rows)

        def own(row: Expr, lane: Expr) -> Stmt:
            best = b.repeat(
                "unroll",
                self.held_count,
                lambda e: put(peak, maximum(at(peak), at(self.held, e))),
            )
            return Seq((put(peak, self.least), put(top, self.least), best))

        def publish(row: Expr, lane: Expr) -> Stmt:
            best = at(peak) if size == 1 else at(top)
            return If((lane % size).eq(0), put(peaks, best, row * groups + lane // size))

        def choose(row: Expr, lane: Expr) -> Stmt:
            mine = at(peaks, row * groups + lane)

            def compare(other: Expr) -> Stmt:
                theirs = at(peaks, row * groups + other)
                before = (at(peak) < theirs) | (theirs.eq(at(peak)) & (other < lane))
                return put(rank, at(rank) + cast(I32, before))

            steps = Seq(
                (
                    put(rank, const(0, I32)),
                    put(peak, mine),
                    b.repeat("serial", groups, compare),
                    If(at(rank).eq(a.k - 1), put(bounds, at(peak), row)),
                )
            )
            return steps if groups == a.lanes else If(lane < groups, steps)

        def know(row: Expr, lane: Expr) -> Stmt:
            return self._bounded(row, at(bounds, row))

        stages = [b.each(own)]
        if size > 1:
            stages.append(b.reduced_in_groups(size, put(top, maximum(at(top), at(peak)))))
        return [*stages, b.each(publish), b.each(choose), b.each(know)]

    # How many candidates there are, and where each thread puts its own.

    def _counted(self, counts: Callable[[Expr, Expr, Expr], Expr]) -> list[Stmt]:
        b, none = self.block, const(0, I32)

        def count(row: Expr, lane: Expr) -> Stmt:
            def one(e: Expr) -> Stmt:
                return put(self.own, at(self.own) + cast(I32, counts(row, lane, e)))

            begin = (put(self.own, none), put(self.count, none))
            return Seq((*begin, b.repeat("unroll", self.held_count, one)))

        before = put(self.place, at(self.count))
        return [b.each(count), b.reduced(before, put(self.count, at(self.count) + at(self.own)))]

    def _is_taken(self, row: Expr, lane: Expr, e: Expr) -> Expr:
        """Whether an element is a candidate, of those that reach the bound."""
        return (at(self.bound) < at(self.held, e)) | (
            self._index(lane, e) <= cast(I64, at(self.last))
        )

    # Exactly the k greatest, where there are too many candidates.

    def _exact_if_many(self) -> list[Stmt]:
        b = self.block
        stages = [b.each(lambda row, lane: put(self.most, at(self.count)))]
        if self.a.rows > 1:
            greatest = put(self.most, maximum(at(self.most), at(self.count)))
            stages.append(b.reduced_in_groups(self.a.rows * self.a.lanes, greatest))
        exact = Seq((self._exact_key(), self._exact_index(), *self._counted(self._is_wanted)))
        return [*stages, If(at(self.most) > self.room, exact)]

    def _is_wanted(self, row: Expr, lane: Expr, e: Expr) -> Expr:
        return (at(self.bound) <= at(self.held, e)) & self._is_taken(row, lane, e)

    def _exact_key(self) -> Stmt:
        """The k-th greatest key: as many bits as possible are set, the sign's is cleared."""
        kind, bits = self.keys.dtype, self.keys.bits
        trial = self.block.register("trial", kind)

        def value(step: Expr) -> Expr:
            bit = const(1, kind) << cast(kind, bits - 1 - step)
            return select(step.eq(0), const(0, kind), at(self.bound) + bit)

        def keep(row: Expr, lane: Expr) -> Stmt:
            enough = at(self.count) >= self.a.k
            return put(self.bound, select(enough, at(trial), at(self.bound)))

        def step(n: Expr) -> Stmt:
            return Seq(
                (
                    self.block.each(lambda row, lane: put(trial, value(n))),
                    *self._counted(lambda row, lane, e: at(trial) <= at(self.held, e)),
                    self.block.each(keep),
                )
            )

        begin = self.block.each(lambda row, lane: put(self.bound, self.least))
        return Seq((begin, self.block.repeat("serial", bits, step)))

    def _exact_index(self) -> Stmt:
        """The last of the elements equal to the bound that is wanted: fewer than k are before."""
        trial = self.block.register("trial_index", I32)
        bits = self.length.bit_length()

        def before(row: Expr, lane: Expr, e: Expr) -> Expr:
            equal = at(self.held, e).eq(at(self.bound))
            earlier = self._index(lane, e) < cast(I64, at(trial))
            return (at(self.bound) < at(self.held, e)) | (equal & earlier)

        def keep(row: Expr, lane: Expr) -> Stmt:
            return put(self.last, select(at(self.count) < self.a.k, at(trial), at(self.last)))

        def step(n: Expr) -> Stmt:
            value = at(self.last) + (const(1, I32) << cast(I32, bits - 1 - n))
            return Seq(
                (
                    self.block.each(lambda row, lane: put(trial, value)),
                    *self._counted(before),
                    self.block.each(keep),
                )
            )

        begin = self.block.each(lambda row, lane: put(self.last, const(0, I32)))
        return Seq((begin, self.block.repeat("serial", bits, step)))

    # Candidates in order.

    def _collect(self) -> Stmt:
        def one(row: Expr, lane: Expr, e: Expr) -> Stmt:
            slot = row * self.room + cast(I64, at(self.place))
            taken = Seq(
                (
                    put(self.candidate, at(self.held, e), slot),
                    put(self.index, cast(I32, self._index(lane, e)), slot),
                    put(self.place, at(self.place) + 1),
                )
            )
            return If(at(self.bound) <= at(self.held, e), If(self._is_taken(row, lane, e), taken))

        return self._each(one)

    def _write(self) -> Stmt:
        a, b = self.a, self.block
        key, index = b.register("key", self.keys.dtype), b.register("number", I32)
        rank = b.register("order", I32)

        def compare(row: Expr, other: Expr) -> Stmt:
            place = row * self.room + other
            theirs, number = at(self.candidate, place), at(self.index, place)
            before = (at(key) < theirs) | (theirs.eq(at(key)) & (number < at(index)))
            return put(rank, at(rank) + cast(I32, before))

        def write(row: Expr) -> Stmt:
            line, first = self._line(row)
            column, to = first + cast(I64, at(index)), (self.first + row, cast(I64, at(rank)))
            stores = Seq(
                (
                    Store("y0", to, Load("x0", (line, column), self.x.dtype)),
                    Store("y1", to, column),
                )
            )
            wanted = at(rank) < a.k
            return If(wanted if a.rows == 1 else wanted & self._has(row), stores)

        def ranked(row: Expr, lane: Expr, step: Expr) -> Stmt:
            mine = step * a.lanes + lane
            place = row * self.room + mine
            count = cast(I64, at(self.count))
            begin = (put(key, at(self.candidate, place)), put(index, at(self.index, place)))
            compared = b.repeat("serial", count, lambda other: compare(row, other))
            found = Seq((*begin, put(rank, const(0, I32)), compared, write(row)))
            return If(mine < count, found)

        def thread(row: Expr, lane: Expr) -> Stmt:
            steps = -(-self.room // a.lanes)
            return b.repeat("serial", steps, lambda step: ranked(row, lane, step))

        return b.each(thread)


def _power(n: int) -> int:
    return 1 << max(0, n - 1).bit_length()


def _topk_rows(attrs: TopKRowsAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    x, buffers = ins[0], parameters(ins, outs)
    blocks = simplify(ceildiv(outs[0].shape[0], attrs.rows))

    def body(b: Expr) -> Stmt:
        return _Selection(attrs, x, simplify(b * attrs.rows)).stmt()

    nest = spatial_block("topk_rows", (blocks,), body, buffers)
    return Func("topk_rows", tuple(buffers.values()), ("y0", "y1"), nest)


OPS = (
    Op(
        "topk_rows",
        _type,
        "opaque",
        TopKRowsAttrs,
        loops=_topk_rows,
        flops=lambda _, ins, outs: ins[0].elements,
        doc="The greatest or least elements of rows in order, and their indices, by the threads of"
        " a GPU together; of equal elements the one with the lower index comes first.",
    ),
)
