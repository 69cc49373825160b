"""The order of rows, ascending or descending, as indices: a stable merge sort.

    %order: i64[b, n] = argsort_rows(%x) {descending=false}        x: T[b, n, m]

Rows of `m` elements are compared element by element. Runs of 1, 2, 4, ... rows are merged until one
run is left; the two places where the next row may come from are kept in small buffers.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, Load, Var, const, minimum, select, unary
from tilewright.core.dtypes import BOOL, I64, STRING
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Alloc, Buffer, Func, If, Seq, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.loop_builder import nest, parameters, spatial_block
from tilewright.ops.op import Op, fail
from tilewright.ops.tensor.topk import precedes

# The runs as merged so far; how long they are; the next row of the left and of the right run;
# whether the right row comes first: 1, or 0, or -1 as long as elements are equal.
MERGED, LENGTH, LEFT, RIGHT, FIRST = "merged", "length", "left", "right", "first"
# Runs of 2**40 rows are more than any memory holds.
LEVELS = 40


@node
class ArgsortAttrs(Attrs):
    """Whether the greatest row comes first."""

    descending: bool = False


def _type(_: ArgsortAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    if x.rank != 3 or x.dtype in (BOOL, STRING):
        raise fail("argsort_rows", f"{x} has no rows that can be ordered", "use numbers of rank 3")
    return TensorType(I64, x.shape[:2])


@node
class _Rows:
    """What is read and written of the rows of one batch `b`."""

    b: Expr
    x: TensorType
    descending: bool

    def held(self, name: str) -> Load:
        """A number that is kept while rows are merged."""
        return Load(name, (self.b,), I64)

    def keep(self, name: str, value: Expr) -> Stmt:
        """Change such a number."""
        return Store(name, (self.b,), value)

    def row(self, place: Expr) -> Load:
        """The number of the row that stands in a place."""
        return Load("y0", (self.b, place), I64)

    def compare(self) -> Stmt:
        """Find out whether the row on the right comes strictly before that on the left."""
        e = Var("at.e")
        left, right = (
            Load("x0", (self.b, self.row(self.held(side)), e), self.x.dtype)
            for side in (LEFT, RIGHT)
        )
        earlier, later = (
            precedes(*pair, self.descending) for pair in ((right, left), (left, right))
        )
        found = select(earlier, const(1), select(later, const(0), const(-1)))
        undecided = self.held(FIRST).eq(const(-1))
        steps = nest(("at.e",), (self.x.shape[2],), If(undecided, self.keep(FIRST, found)))
        return Seq((self.keep(FIRST, const(-1)), steps))

    def merge(self) -> Stmt:
        """Merge neighbouring runs to runs of twice the length."""
        n, p, length = self.x.shape[1], Var("at.p"), self.held(LENGTH)
        left, right = self.held(LEFT), self.held(RIGHT)
        begin = p // (length * 2) * (length * 2)
        middle, end = minimum(begin + length, n), minimum(begin + length * 2, n)
        both = (left < middle) & (right < end)
        none_left = unary("not", left < middle)
        start = Seq((self.keep(LEFT, begin), self.keep(RIGHT, middle)))
        from_right = Seq(
            (
                Store(MERGED, (self.b, p), self.row(right)),
                self.keep(RIGHT, right + 1),
            )
        )
        from_left = Seq(
            (
                Store(MERGED, (self.b, p), self.row(left)),
                self.keep(LEFT, left + 1),
            )
        )
        step = Seq(
            (
                If(p.eq(begin), start),
                If(both, self.compare(), self.keep(FIRST, select(none_left, const(1), const(0)))),
                If(self.held(FIRST).eq(const(1)), from_right, from_left),
            )
        )
        back = Store("y0", (self.b, Var("at.q")), Load(MERGED, (self.b, Var("at.q")), I64))
        return Seq(
            (
                nest(("at.p",), (n,), step),
                nest(("at.q",), (n,), back),
                self.keep(LENGTH, length * 2),
            )
        )


def _argsort_rows(
    attrs: ArgsortAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    x = ins[0]
    batch, n = x.shape[:2]
    own = {MERGED: (batch, n), LENGTH: (batch,), LEFT: (batch,), RIGHT: (batch,), FIRST: (batch,)}
    local = {name: Buffer(name, I64, shape) for name, shape in own.items()}
    params = parameters(ins, outs)

    def body(b: Expr) -> Stmt:
        rows = _Rows(b, x, attrs.descending)
        merge = If(rows.held(LENGTH) < n, rows.merge())
        return Seq(
            (
                nest(("at.i",), (n,), Store("y0", (b, Var("at.i")), Var("at.i"))),
                rows.keep(LENGTH, const(1)),
                nest(("at.level",), (const(LEVELS),), merge),
            )
        )

    block: Stmt = spatial_block("argsort_rows", (batch,), body, {**params, **local})
    for buffer in local.values():
        block = Alloc(buffer, block)
    return Func("argsort_rows", tuple(params.values()), ("y0",), block)


OPS = (
    Op(
        "argsort_rows",
        _type,
        "opaque",
        ArgsortAttrs,
        loops=_argsort_rows,
        flops=lambda _, ins, outs: ins[0].elements * const(20),
        doc="The numbers of rows in their order; equal rows stay as they are, NaN is greatest.",
    ),
)
