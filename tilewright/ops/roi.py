"""Pooling of regions of interest: roi_align and max_roi_pool.

How many elements a bin takes may depend on the region's size, which is known only when running: the
loops over a bin then have as many steps as the data says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.arith.expr import (
    Expr,
    Load,
    Var,
    call,
    cast,
    const,
    lowest,
    maximum,
    minimum,
    select,
)
from tilewright.core.dtypes import I64, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Seq, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.precision import accumulator
from tilewright.ops.row import Op, fail, same_dtype
from tilewright.ops.scatter import parameters, spatial_block
from tilewright.ops.sizes import same_size

RESULT = "total"


@node
class RoiAlignAttrs(Attrs):
    """Size of the result, samples a bin and axis (0: as many as it has elements), how they join.

    `half_pixel` says that coordinates count from the corner of the first element, not its centre.
    """

    size: tuple[int, int] = (1, 1)
    samples: int = 0
    scale: float = 1.0
    mode: str = "avg"
    half_pixel: bool = True


@node
class MaxRoiPoolAttrs(Attrs):
    """Size of the result, and what regions are multiplied by."""

    size: tuple[int, int]
    scale: float = 1.0


def _pooled(op: str, x: TensorType, rois: TensorType, columns: int, size: Sequence[int]) -> Expr:
    """The number of regions, all operands checked."""
    if x.rank != 4 or not x.dtype.is_float or rois.rank != 2:
        raise fail(op, f"{x} with regions {rois}", "give an image [N, C, H, W] of floats")
    if rois.shape[1] is not const(columns) or min(size) < 1:
        raise fail(op, f"regions {rois} are not {columns} numbers each, or {size} is empty")
    same_dtype(op, (x, rois))
    return rois.shape[0]


def _align_type(attrs: RoiAlignAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, rois, batch = ins
    count = _pooled("roi_align", x, rois, 4, attrs.size)
    if attrs.mode not in ("avg", "max") or attrs.samples < 0:
        raise fail("roi_align", f"mode {attrs.mode!r} with {attrs.samples} samples")
    if batch.rank != 1 or not batch.dtype.is_integer:
        raise fail("roi_align", f"{batch} is not one image number a region")
    if same_size("roi_align", count, batch.shape[0]) is None:
        raise fail("roi_align", f"{batch} is not one image number for each of {count} regions")
    return TensorType(x.dtype, (count, x.shape[1], *map(const, attrs.size)))


def _max_type(attrs: MaxRoiPoolAttrs, ins: Sequence[TensorType]) -> TensorType:
    count = _pooled("max_roi_pool", ins[0], ins[1], 5, attrs.size)
    return TensorType(ins[0].dtype, (count, ins[0].shape[1], *map(const, attrs.size)))


@node
class _Side:
    """One axis of the bins of a region: where it starts, its length, and its samples."""

    start: Expr
    step: Expr
    count: Expr


def _number(v: float, like: Expr) -> Expr:
    return const(v, like.dtype)


def _side(attrs: RoiAlignAttrs, ends: tuple[Expr, Expr], bins: int) -> _Side:
    start, end = (
        e * _number(attrs.scale, e) - _number(0.5 if attrs.half_pixel else 0, e) for e in ends
    )
    length = end - start
    if not attrs.half_pixel:
        length = maximum(length, _number(1, length))
    step = length / _number(bins, length)
    count = const(attrs.samples) if attrs.samples else maximum(cast(I64, call("ceil", step)), 0)
    return _Side(start, step, count)


def _position(side: _Side, bin: Expr, sample: Expr) -> Expr:
    real = side.start.dtype
    middle = cast(real, sample) + const(0.5, real)
    return side.start + cast(real, bin) * side.step + middle * side.step / cast(real, side.count)


@node
class _Between:
    """Two neighbours along an axis, how near the second is, and whether the position counts."""

    low: Expr
    high: Expr
    part: Expr
    inside: Expr


def _between(position: Expr, size: Expr) -> _Between:
    real = position.dtype
    inside = (const(-1, real) <= position) & (position <= cast(real, size))
    p = minimum(maximum(position, const(0, real)), cast(real, size - 1))
    low = maximum(minimum(cast(I64, p), size - 1), 0)
    return _Between(low, minimum(low + 1, size - 1), p - cast(real, low), inside)


def _sample(x: TensorType, outer: tuple[Expr, Expr], y: _Between, z: _Between, mode: str) -> Expr:
    """The sample between four neighbours: their weighted sum, or the greatest weighted one."""
    one = _number(1, y.part)
    corners = []
    for row, near_row in ((y.low, one - y.part), (y.high, y.part)):
        for column, near_column in ((z.low, one - z.part), (z.high, z.part)):
            value = cast(y.part.dtype, Load("x0", (*outer, row, column), x.dtype))
            corners.append(near_row * near_column * value)
    join: Callable[[Expr, Expr], Expr] = maximum if mode == "max" else lambda a, b: a + b
    a, b, c, d = corners
    return select(y.inside & z.inside, join(join(join(a, b), c), d), _number(0, y.part))


def _image(index: Expr, count: Expr) -> Expr:
    """Which image a region is in, in bounds whatever the data says."""
    return minimum(maximum(cast(I64, index), 0), count - 1)


@node
class _Bin:
    """The elements of one bin: how many along each axis, and number `iy`, `ix` of them."""

    counts: tuple[Expr, Expr]
    element: Expr
    mode: str = "max"

    def fold(self) -> tuple[Expr, Stmt]:
        """Their mean or greatest, zero if there are none, and the loops that find it."""
        real = self.element.dtype
        zero, total = const(0, real), Load(RESULT, (const(0),), real)
        count = self.counts[0] * self.counts[1]
        if self.mode == "avg":
            start, step = zero, total + self.element
            value = total / cast(real, maximum(count, 1))
        else:
            start, step = lowest(real), maximum(total, self.element)
            value = select(count <= 0, zero, total)
        body: Stmt = Store(RESULT, (const(0),), step)
        for name, extent in (("ix", self.counts[1]), ("iy", self.counts[0])):
            body = For(name, extent, "serial", body)
        return value, Seq((Store(RESULT, (const(0),), start), body))


def _pool(
    name: str,
    ins: Sequence[TensorType],
    outs: Sequence[TensorType],
    bin_of: Callable[[Expr, Expr, Expr, Expr], _Bin],
) -> Func:
    """One block an element of the result, which runs through its bin."""
    buffers = parameters(ins, outs)
    real = accumulator(ins[0].dtype)

    def body(*i: Expr) -> Stmt:
        value, loops = bin_of(*i).fold()
        stored = Store("y0", i, cast(ins[0].dtype, value))
        return Alloc(Buffer(RESULT, real, (const(1),), "local"), Seq((loops, stored)))

    block = spatial_block(name, outs[0].shape, body, buffers)
    return Func(name, tuple(buffers.values()), ("y0",), block)


def _region(rois: TensorType, n: Expr, first: int, real: DType) -> list[tuple[Expr, Expr]]:
    """The ends of region `n` along rows and columns; its numbers begin with `first`."""
    left, top, right, bottom = (
        cast(real, Load("x1", (n, const(first + k)), rois.dtype)) for k in range(4)
    )
    return [(top, bottom), (left, right)]


def _roi_align(attrs: RoiAlignAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    x, rois, batch = ins

    def bin_of(n: Expr, c: Expr, row: Expr, column: Expr) -> _Bin:
        ends = _region(rois, n, 0, accumulator(x.dtype))
        rows, columns = (_side(attrs, ends[a], attrs.size[a]) for a in range(2))
        y = _between(_position(rows, row, Var("iy")), x.shape[2])
        z = _between(_position(columns, column, Var("ix")), x.shape[3])
        outer = (_image(Load("x2", (n,), batch.dtype), x.shape[0]), c)
        value = _sample(x, outer, y, z, attrs.mode)
        return _Bin((rows.count, columns.count), value, attrs.mode)

    return _pool("roi_align", ins, outs, bin_of)


def _rounded(v: Expr) -> Expr:
    """The nearest integer, halves away from zero."""
    whole = call("floor", call("abs", v) + _number(0.5, v))
    return call("copysign", whole, v)


def _whole_bin(
    ends: tuple[Expr, Expr], scale: float, bin: Expr, bins: int, size: Expr
) -> tuple[Expr, Expr]:
    """The first element of a bin and how many follow, all within the image."""
    start, end = (_rounded(e * _number(scale, e)) for e in ends)
    real = start.dtype
    step = maximum(end - start + const(1, real), const(1, real)) / const(bins, real)
    low = call("floor", cast(real, bin) * step) + start
    high = call("ceil", cast(real, bin + 1) * step) + start
    first, last = (minimum(maximum(cast(I64, e), 0), size) for e in (low, high))
    return first, maximum(last - first, 0)


def _max_roi_pool(
    attrs: MaxRoiPoolAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Func:
    x, rois = ins

    def bin_of(n: Expr, c: Expr, row: Expr, column: Expr) -> _Bin:
        real = accumulator(x.dtype)
        ends, bins = _region(rois, n, 1, real), (row, column)
        (top, rows), (left, columns) = (
            _whole_bin(ends[a], attrs.scale, bins[a], attrs.size[a], x.shape[2 + a])
            for a in range(2)
        )
        image = _image(Load("x1", (n, const(0)), rois.dtype), x.shape[0])
        place = (image, c, top + Var("iy"), left + Var("ix"))
        return _Bin((rows, columns), cast(real, Load("x0", place, x.dtype)))

    return _pool("max_roi_pool", ins, outs, bin_of)


OPS = (
    Op(
        "roi_align",
        _align_type,
        "opaque",
        RoiAlignAttrs,
        loops=_roi_align,
        flops=lambda a, ins, outs: outs[0].elements * const(16 * max(a.samples, 2) ** 2),
        doc="The mean, or the greatest, of interpolated samples of each bin of each region.",
    ),
    Op(
        "max_roi_pool",
        _max_type,
        "opaque",
        MaxRoiPoolAttrs,
        loops=_max_roi_pool,
        flops=4,
        doc="The greatest element of each bin of each region.",
    ),
)
