"""Pooling of regions of interest: roi_align and max_roi_pool.

How many elements a bin takes may depend on the region's size, which is known only when running: the
loops over a bin then have as many steps as the data says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.arith.dtype_limits import lowest
from tilewright.arith.expr import (
    Expr,
    Load,
    Var,
    call,
    cast,
    const,
    maximum,
    minimum,
    select,
)
from tilewright.core.dtypes import I64, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.loop.nodes import Alloc, Buffer, Func, Seq, Stmt, Store
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulator
from tilewright.ops.loop_builder import nest, parameters, spatial_block
from tilewright.ops.op import Op, fail, same_dtype
from tilewright.ops.shape.assumptions import has_elements, same_size
from tilewright.ops.tensor.positions import Sites, place_of

# Sums where elements are narrow; where the neighbours of a sample lie, and their weights.
RESULT, PLACES, WEIGHTS = "total", "places", "weights"


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
    if not has_elements("max_roi_pool", ins[0].shape[0], (count,)):
        raise fail("max_roi_pool", f"{ins[0]} has no image")
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


def _found(y: _Between, z: _Between) -> Stmt:
    """Keep where the four neighbours of a sample lie, -1 for one that does not count, and weights.

    All channels have them in common.
    """
    one = _number(1, y.part)
    inside = y.inside & z.inside
    kept: list[Stmt] = []
    corners = [(a, b) for a in range(2) for b in range(2)]
    for k, (a, b) in enumerate(corners):
        row, near_row = (y.high, y.part) if a else (y.low, one - y.part)
        column, near_column = (z.high, z.part) if b else (z.low, one - z.part)
        kept.append(Store(PLACES, (const(k), const(0)), select(inside, row, const(-1))))
        kept.append(Store(PLACES, (const(k), const(1)), column))
        kept.append(Store(WEIGHTS, (const(k),), near_row * near_column))
    return Seq(tuple(kept))


def _sample(
    x: TensorType, outer: tuple[Expr, Expr], when: Expr | None, real: DType, mode: str
) -> Expr:
    """The sample between the neighbours found: their weighted sum, or the greatest weighted."""
    corners = []
    for k in range(4):
        row, column = (Load(PLACES, (const(k), const(axis)), I64) for axis in range(2))
        inside = const(0) <= row
        mask = inside if when is None else when & inside
        value = Load("x0", (*outer, row, column), x.dtype, mask)
        corners.append(Load(WEIGHTS, (const(k),), real) * cast(real, value))
    a, b, c, d = corners
    if mode == "max":
        return maximum(maximum(a, b), maximum(c, d))
    return a + b + c + d


def _image(index: Expr, count: Expr) -> tuple[Expr, Expr | None]:
    """Which image a region is in, and a mask for reading it; one that there is not is reported."""
    (image,), when = place_of((index,), (count,), Sites().check, wraps=False)
    return image, when


@dataclass(frozen=True)
class _Bin:
    """The elements of one bin: how many along each axis, and number `iy`, `ix` of a channel's."""

    counts: tuple[Expr, Expr]
    element: Callable[[Expr], Expr]
    mode: str = "max"
    before: Stmt | None = None  # what the elements of all channels have in common

    def start(self, real: DType) -> Expr:
        """What the sum or the maximum starts from."""
        return const(0, real) if self.mode == "avg" else lowest(real)

    def step(self, total: Expr, channel: Expr) -> Expr:
        """What it is with one more element."""
        new = self.element(channel)
        return total + new if self.mode == "avg" else maximum(total, new)

    def result(self, total: Expr) -> Expr:
        """The mean, or the greatest; zero if there are none."""
        count = self.counts[0] * self.counts[1]
        if self.mode == "avg":
            return total / cast(total.dtype, maximum(count, 1))
        return select(count <= 0, const(0, total.dtype), total)


def _pool(
    name: str,
    ins: Sequence[TensorType],
    outs: Sequence[TensorType],
    bin_of: Callable[[Expr, Expr, Expr], _Bin],
) -> Func:
    """One block a bin, which iterates over it: positions are the same in all channels."""
    buffers = parameters(ins, outs)
    dtype, real = ins[0].dtype, accumulator(ins[0].dtype)
    result = Buffer(RESULT, real, outs[0].shape)
    own = (
        Buffer(PLACES, I64, (const(4), const(2)), "local"),
        Buffer(WEIGHTS, real, (const(4),), "local"),
    )
    kept = buffers["y0"] if dtype == real else result
    rows, _, *size = outs[0].shape

    def body(n: Expr, row: Expr, column: Expr) -> Stmt:
        loops = _bin_loops(bin_of(n, row, column), (n, row, column), kept, dtype)
        for buffer in own:
            loops = Alloc(buffer, loops)
        return loops

    known = {**buffers, **{b.name: b for b in (result, *own)}}
    block = spatial_block(name, (rows, *size), body, known)
    if kept is result:
        block = Alloc(result, block)
    return Func(name, tuple(buffers.values()), ("y0",), block)


def _bin_loops(bin: _Bin, at: tuple[Expr, Expr, Expr], kept: Buffer, dtype: DType) -> Stmt:
    """Through the channels of a bin: what each begins with, its elements, what it ends with."""
    n, row, column = at
    channels = kept.shape[1]

    def place(channel: str) -> tuple[Expr, ...]:
        return n, Var(channel), row, column

    def total(channel: str) -> Load:
        return Load(kept.name, place(channel), kept.dtype)

    begun = Store(kept.name, place("c0"), bin.start(kept.dtype))
    added = Store(kept.name, place("c"), bin.step(total("c"), Var("c")))
    ended = Store("y0", place("c1"), cast(dtype, bin.result(total("c1"))))
    each = [] if bin.before is None else [bin.before]
    each.append(nest(("c",), (channels,), added))
    return Seq(
        (
            nest(("c0",), (channels,), begun),
            nest(("iy", "ix"), bin.counts, Seq(tuple(each))),
            nest(("c1",), (channels,), ended),
        )
    )


def _region(rois: TensorType, n: Expr, first: int, real: DType) -> list[tuple[Expr, Expr]]:
    """The ends of region `n` along rows and columns; its numbers begin with `first`."""
    left, top, right, bottom = (
        cast(real, Load("x1", (n, const(first + k)), rois.dtype)) for k in range(4)
    )
    return [(top, bottom), (left, right)]


def _roi_align(attrs: RoiAlignAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Func:
    x, rois, batch = ins
    real = accumulator(x.dtype)

    def bin_of(n: Expr, row: Expr, column: Expr) -> _Bin:
        ends = _region(rois, n, 0, real)
        rows, columns = (_side(attrs, ends[a], attrs.size[a]) for a in range(2))
        y = _between(_position(rows, row, Var("iy")), x.shape[2])
        z = _between(_position(columns, column, Var("ix")), x.shape[3])
        image, when = _image(Load("x2", (n,), batch.dtype), x.shape[0])

        def sample(c: Expr) -> Expr:
            return _sample(x, (image, c), when, real, attrs.mode)

        return _Bin((rows.count, columns.count), sample, attrs.mode, _found(y, z))

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

    def bin_of(n: Expr, row: Expr, column: Expr) -> _Bin:
        real = accumulator(x.dtype)
        ends, bins = _region(rois, n, 1, real), (row, column)
        (top, rows), (left, columns) = (
            _whole_bin(ends[a], attrs.scale, bins[a], attrs.size[a], x.shape[2 + a])
            for a in range(2)
        )
        image, when = _image(Load("x1", (n, const(0)), rois.dtype), x.shape[0])

        def element(c: Expr) -> Expr:
            place = (image, c, top + Var("iy"), left + Var("ix"))
            return cast(real, Load("x0", place, x.dtype, when))

        return _Bin((rows, columns), element)

    return _pool("max_roi_pool", ins, outs, bin_of)


OPS = (
    Op(
        "roi_align",
        _align_type,
        "opaque",
        RoiAlignAttrs,
        loops=_roi_align,
        checks=lambda attrs, ins: 1,
        flops=lambda a, ins, outs: outs[0].elements * const(16 * max(a.samples, 2) ** 2),
        doc="The mean, or the greatest, of interpolated samples of each bin of each region.",
    ),
    Op(
        "max_roi_pool",
        _max_type,
        "opaque",
        MaxRoiPoolAttrs,
        loops=_max_roi_pool,
        checks=lambda attrs, ins: 1,
        flops=4,
        doc="The greatest element of each bin of each region.",
    ),
)
