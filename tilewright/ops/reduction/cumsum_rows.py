"""Cumulative sums of rows on a GPU: the lanes of a row scan it together.

    for row in thread(4) { for lane in thread(32) {        vectors of 16 bytes, all steps at once
      held[step, v] = x[row, (step * 32 + lane) * 8 + v]
      sum[step] += held[step, v];  held[step, v] = sum[step]
    } }
    for step {
      for row in thread(4) { for lane in allreduce(32) {   a scan over the lanes
        before[step] = run;  run += sum[step]
      } }
    }
    y[row, ...] = before[step] + held[step, v]

Each element is read and written once. A row of several warps gives each warp a part of it; a second
scan, over warps, gives what the warps before add up to, and carries it to the next part of a long
row. Narrow floats are added up in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.arith.expr import TRUE, Expr, Load, as_int, cast, ceildiv, const, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Func, If, Seq, Stmt, Store
from tilewright.ir.loop.thread_mapping import WARP_SIZE
from tilewright.ir.types import TensorType
from tilewright.ops.loop_builder import parameters, spatial_block
from tilewright.ops.op import Op, fail, same_type
from tilewright.ops.thread_block import ThreadBlock, at, put


@node
class CumsumRowsAttrs(Attrs):
    """How: `lanes` threads a row, `rows` of them in a thread block.

    A thread has `steps` vectors of `width` elements at a time. `exclusive` leaves the element
    itself out, `reverse` starts at the end.
    """

    lanes: int
    rows: int
    steps: int
    width: int
    exclusive: bool = False
    reverse: bool = False


def _type(attrs: CumsumRowsAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    if x.rank != 2 or x.dtype.kind not in ("int", "uint", "float"):
        raise fail("cumsum_rows", f"{x} has no rows of numbers", "use rank 2")
    length = as_int(x.shape[1])
    if attrs.width > 1 and (length is None or length % attrs.width):
        raise fail("cumsum_rows", f"rows of {x} are no vectors of {attrs.width}")
    return same_type(attrs, ins)


def _accumulator(dtype: DType) -> DType:
    return F32 if dtype.is_float and dtype.bits < F32.bits else dtype


class _Scan:
    """The nests of a thread block, which begins at row `first`."""

    def __init__(self, attrs: CumsumRowsAttrs, x: TensorType, first: Expr) -> None:
        self.a, self.x, self.first = attrs, x, first
        self.block = block = ThreadBlock("at", attrs.rows, attrs.lanes)
        kind = _accumulator(x.dtype)
        self.zero = const(0, kind)
        self.held = block.register("held", kind, attrs.steps * attrs.width)
        self.own = block.register("own", kind)
        self.sum = block.register("sum", kind, attrs.steps)
        self.before = block.register("before", kind, attrs.steps)
        self.run = block.register("run", kind)
        # Of a row of several warps: what all elements so far add up to, those before this warp's
        # part of the row, and its part, of which the last lane knows.
        self.total = block.register("total", kind)
        self.earlier = block.register("earlier", kind)
        self.part = block.register("part", kind)
        self.several = attrs.lanes > WARP_SIZE
        self.chunk = attrs.lanes * attrs.steps * attrs.width
        self.chunks = simplify(ceildiv(x.shape[1], self.chunk))

    def stmt(self) -> Stmt:
        """What the block does."""
        carried = self.total if self.several else self.run
        begin = self.block.each(lambda row, lane: put(carried, self.zero))
        if as_int(self.chunks) == 1:
            parts = self._part(const(0))
        else:
            parts = self.block.repeat("serial", self.chunks, self._part)
        return self.block.allocated(Seq((begin, parts)))

    def _part(self, number: Expr) -> Stmt:
        """One part of each row: what the registers of its lanes hold."""
        each = self.block.each
        stages = [
            each(lambda row, lane: self._steps(lambda j: self._load(number, row, lane, j))),
            each(lambda row, lane: self._steps(self._along_vector)),
        ]
        if self.several:
            stages.append(each(lambda row, lane: put(self.run, self.zero)))
        for step in range(self.a.steps):
            before, total = put(self.before, at(self.run), step), at(self.run) + at(self.sum, step)
            stages.append(self.block.reduced_in_warps(before, put(self.run, total)))
        if self.several:
            stages += self._over_warps()
        stages.append(
            each(lambda row, lane: self._steps(lambda j: self._write(number, row, lane, j)))
        )
        return Seq(tuple(stages))

    def _over_warps(self) -> list[Stmt]:
        def part(row: Expr, lane: Expr) -> Stmt:
            is_last = (lane % WARP_SIZE).eq(WARP_SIZE - 1)
            return put(self.part, select(is_last, at(self.run), self.zero))

        earlier = put(self.earlier, at(self.total))
        scan = self.block.reduced(earlier, put(self.total, at(self.total) + at(self.part)))
        return [self.block.each(part), scan]

    def _steps(self, body: Callable[[Expr], Stmt]) -> Stmt:
        return self.block.repeat("unroll", self.a.steps, body)

    def _place(self, number: Expr, row: Expr, lane: Expr, step: Expr) -> tuple[Expr, Expr, Expr]:
        """The row of a vector, its first element in memory, and whether there is such a vector."""
        a, (count, length) = self.a, self.x.shape
        group = min(a.lanes, WARP_SIZE)
        warp = number * (a.lanes // group) + lane // group
        place = ((warp * a.steps + step) * group + lane % group) * a.width
        inside = TRUE if (as_int(length) or 1) % self.chunk == 0 else place < length
        inside = inside if a.rows == 1 else inside & (self.first + row < count)
        start = length - a.width - place if a.reverse else place
        return self.first + row, start, inside

    def _load(self, number: Expr, row: Expr, lane: Expr, step: Expr) -> Stmt:
        line, start, inside = self._place(number, row, lane, step)
        mask = None if inside is TRUE else inside

        def one(v: Expr) -> Stmt:
            found = Load("x0", (line, start + v), self.x.dtype, mask)
            return put(self.held, cast(self.held.dtype, found), step * self.a.width + v)

        return self.block.repeat("vectorize", self.a.width, one)

    def _along_vector(self, step: Expr) -> Stmt:
        """Each element becomes what it and those before it in its vector add up to."""
        sum_ = at(self.sum, step)

        def one(v: Expr) -> Stmt:
            place = step * self.a.width + (self.a.width - 1 - v if self.a.reverse else v)
            own = put(self.own, at(self.held, place))
            kept = put(self.held, sum_, place)
            added = put(self.sum, sum_ + at(self.own), step)
            return Seq((own, kept, added) if self.a.exclusive else (own, added, kept))

        begin = put(self.sum, self.zero, step)
        return Seq((begin, self.block.repeat("unroll", self.a.width, one)))

    def _write(self, number: Expr, row: Expr, lane: Expr, step: Expr) -> Stmt:
        line, start, inside = self._place(number, row, lane, step)
        within = at(self.before, step)
        before = at(self.earlier) + within if self.several else within

        def one(v: Expr) -> Stmt:
            value = before + at(self.held, step * self.a.width + v)
            return Store("y0", (line, start + v), cast(self.x.dtype, value))

        stores = self.block.repeat("vectorize", self.a.width, one)
        return stores if inside is TRUE else If(inside, stores)


def _cumsum_rows(
    attrs: CumsumRowsAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    x, buffers = ins[0], parameters(ins, outs)
    blocks = simplify(ceildiv(x.shape[0], attrs.rows))

    def body(b: Expr) -> Stmt:
        return _Scan(attrs, x, simplify(b * attrs.rows)).stmt()

    nest = spatial_block("cumsum_rows", (blocks,), body, buffers)
    return Func("cumsum_rows", tuple(buffers.values()), ("y0",), nest)


OPS = (
    Op(
        "cumsum_rows",
        _type,
        "opaque",
        CumsumRowsAttrs,
        loops=_cumsum_rows,
        doc="The running sums of rows, by the threads of a GPU together.",
    ),
)
