"""Cumulative sums, products and logarithms of sums of exponentials along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from tilewright.arith.expr import (
    Expr,
    Load,
    Var,
    binary,
    call,
    const,
    maximum,
    minimum,
    select,
)
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import (
    Alloc,
    Block,
    Buffer,
    For,
    Func,
    Iter,
    Region,
    Seq,
    Stmt,
    Store,
)
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.elementwise.define import Accepts, check_dtype, floats, numbers
from tilewright.ops.op import Op, fail, normalize_axis

# Neighbouring lines in one block: some vectors, whose sums do not wait for each other.
LINES_PER_BLOCK = 32

Join = Callable[[Expr, Expr], Expr]
"""What the running value becomes with the next element."""


@node
class ScanAttrs(Attrs):
    """The axis; `exclusive` leaves the element itself out, `reverse` starts at the end."""

    axis: int
    exclusive: bool = False
    reverse: bool = False


def _scan_type(
    name: str, accepts: Accepts, attrs: ScanAttrs, ins: Sequence[TensorType]
) -> TensorType:
    check_dtype(name, accepts, ins[0].dtype)
    if ins[0].rank == 0:
        raise fail(name, "a scalar has no axis")
    normalize_axis(name, attrs.axis, ins[0].rank)
    return ins[0]


def _scan(
    name: str,
    join: Join,
    start: float,
    attrs: ScanAttrs,
    ins: Sequence[TensorType],
    outs: Sequence[TensorType],
) -> Func:
    """Lines along the axis, each with its running value in a register, many at a time.

    Lines that lie side by side are taken together, as vectors; what is left of them one by one.
    """
    x = ins[0]
    axis = normalize_axis(name, attrs.axis, x.rank)
    lines = _Lines(name, join, const(start, x.dtype), attrs, x.shape, axis)
    side = const(1) if axis == x.rank - 1 else x.shape[-1]
    groups = simplify(side // LINES_PER_BLOCK)
    nests = [lines.nest(LINES_PER_BLOCK, groups, const(0))] if groups is not const(0) else []
    rest = simplify(side % LINES_PER_BLOCK)
    if rest is not const(0):
        nests.append(lines.nest(1, rest, simplify(groups * LINES_PER_BLOCK)))
    params = (Buffer("x0", x.dtype, x.shape), Buffer("y0", x.dtype, x.shape))
    return Func(name, params, ("y0",), Seq(tuple(nests)))


class _Lines:
    """Makes the loops over the lines of a tensor along an axis."""

    def __init__(
        self, name: str, join: Join, start: Expr, attrs: ScanAttrs, shape: Shape, axis: int
    ) -> None:
        self.name = name
        self.join = join
        self.start = start
        self.attrs = attrs
        self.shape = shape
        self.axis = axis
        # The axis along which lines lie side by side in memory is counted by itself.
        self.outer = [d for d in range(len(shape) - 1) if d != axis]

    def nest(self, width: int, count: Expr, first: Expr) -> Stmt:
        """In each row of lines `count` times `width` of them, from the line `first` on."""
        word = f"{self.name}{width}"
        side = simplify(first + Var("at.side") * width)
        at = self._at(const(0), side)
        sizes: list[Expr] = [const(1)] * len(at)
        if self.axis != len(at) - 1:
            sizes[-1] = const(width)
        sizes[self.axis] = self.shape[self.axis]
        box = tuple(zip(at, sizes, strict=True))
        axes = [(f"at.v{d}", self.shape[d]) for d in self.outer] + [("at.side", count)]
        body: Stmt = Block(
            word,
            tuple(Iter(v, "S", n, Var(f"{word}.{v}")) for v, n in axes),
            (Region("x0", box),),
            (Region("y0", box),),
            self._run(word, width, side),
        )
        for v, n in reversed(axes):
            body = For(f"{word}.{v}", n, "serial", body)
        return body

    def _at(self, place: Expr, side: Expr) -> tuple[Expr, ...]:
        """The index of the element at `place` of a line."""
        index: list[Expr] = [Var(f"at.v{d}") for d in range(len(self.shape))]
        index[-1] = side
        index[self.axis] = place
        return tuple(index)

    def _run(self, word: str, width: int, side: Expr) -> Stmt:
        """What one block does: the running values start, then go along the axis."""
        kept = Buffer(f"{word}.sum", self.start.dtype, (const(width),), "local")
        k, length = Var(f"{word}.k"), self.shape[self.axis]
        place = simplify(length - 1 - k) if self.attrs.reverse else k

        def each(suffix: str, *stores: Callable[[Expr], Store]) -> Stmt:
            lane = Var(f"{word}.{suffix}") if width > 1 else const(0)
            body = Seq(tuple(store(lane) for store in stores))
            return For(f"{word}.{suffix}", const(width), "vectorize", body) if width > 1 else body

        def at(lane: Expr) -> tuple[Expr, ...]:
            return self._at(place, simplify(side + lane))

        def sofar(lane: Expr) -> Load:
            return Load(kept.name, (lane,), kept.dtype)

        def begin(lane: Expr) -> Store:
            return Store(kept.name, (lane,), self.start)

        def add(lane: Expr) -> Store:
            element = Load("x0", at(lane), kept.dtype)
            return Store(kept.name, (lane,), self.join(sofar(lane), element))

        def write(lane: Expr) -> Store:
            return Store("y0", at(lane), sofar(lane))

        steps = (write, add) if self.attrs.exclusive else (add, write)
        along = For(k.name, length, "serial", each("lane", *steps))
        return Alloc(kept, Seq((each("start", begin), along)))


def _log_add_exp(a: Expr, b: Expr) -> Expr:
    """`log(exp(a) + exp(b))`, of the greater one and what the lesser adds to it."""
    high, low = maximum(a, b), minimum(a, b)
    added = high + call("log1p", call("exp", low - high))
    unchanged = a.eq(b) & call("isinf", a)
    nan = call("isnan", a) | call("isnan", b)
    return select(nan, a + b, select(unchanged, a, added))


_ROWS: tuple[tuple[str, Join, float, Accepts, str], ...] = (
    ("cumsum", partial(binary, "add"), 0, numbers, "sum"),
    ("cumprod", partial(binary, "mul"), 1, numbers, "product"),
    ("cumlogsumexp", _log_add_exp, -math.inf, floats, "logarithm of the sum of exponentials"),
)

OPS = tuple(
    Op(
        name,
        partial(_scan_type, name, accepts),
        "opaque",
        ScanAttrs,
        loops=partial(_scan, name, join, start),
        doc=f"the running {word} along an axis",
    )
    for name, join, start, accepts, word in _ROWS
)
