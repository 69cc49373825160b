"""Sampling at computed positions as graph operators: what its gradients are taken of.

An axis gives its taps, each the index of an element and its weight; a sample is the sum over all
combinations. Elements are gathered, so that by the gradient of `gather_nd` they are added up where
they were taken; the weights have the slopes along the positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

import numpy as np

from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, F64, I64, DType
from tilewright.core.errors import UnsupportedError
from tilewright.ir.types import Shape
from tilewright.ops.conv.deformable_im2col import DeformableIm2ColAttrs
from tilewright.ops.gradient.formula import (
    Parts,
    constant,
    count_up,
    flattened,
    part,
    reduced,
    size_of,
    transpose,
    value,
    wide,
)
from tilewright.ops.image.grid_sample import (
    CUBIC_COEFFICIENT,
    SAMPLE_REACH,
    GridSampleAttrs,
)
from tilewright.ops.image.roi import RoiAlignAttrs
from tilewright.ops.op import GraphOps
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.ops.tensor.indexing import GatherNdAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.ops.traced_value import Value, where


@dataclass(frozen=True)
class _Tap:
    """An element that takes part, whose index is in bounds; its weight is 0 where it is none."""

    index: Value
    weight: Value | None


def _size(like: Value, size: Expr, dtype: DType) -> Value:
    """A size as a number of a type."""
    found = like.called(like.g.add("dims", attrs=DimsAttrs((simplify(size),), ())))
    return found.cast(dtype)


def _tap(index: Value, weight: Value | None, size: Expr, bounded: bool) -> _Tap:
    """A tap held in bounds; where nothing beyond is `bounded`, it counts as zero there."""
    last = _size(index, simplify(size - 1), I64)
    held = index.apply("max", 0).apply("min", last)
    if bounded:
        return _Tap(held, weight)
    assert weight is not None
    return _Tap(held, where(held.apply("equal", index), weight, weight.number(0)))


def _linear(v: Value, size: Expr, bounded: bool) -> list[_Tap]:
    floor = v.apply("floor")
    share, low = v - floor, floor.cast(I64)
    return [_tap(low, 1 - share, size, bounded), _tap(low + 1, share, size, bounded)]


def _cubic_weights(share: Value) -> list[Value]:
    """Keys' polynomials as products, see `ops.image.interpolate`."""
    a, rest = CUBIC_COEFFICIENT, 1 - share

    def near(t: Value, left: Value) -> Value:
        return left * (1 + t - t * t * (a + 2))

    def far(t: Value, left: Value) -> Value:
        return t * left * left * a

    return [far(share, rest), near(share, rest), near(rest, share), far(rest, share)]


def _sampled(x: Value, axes: Sequence[Sequence[_Tap]]) -> Value:
    """`x[n, c, space...]` sampled for each batch: [n, c, places...]."""
    rank, sizes = len(x.shape), x.shape[2:]
    places = axes[0][0].index.shape[1:]
    image = flattened(transpose(x, (0, *range(2, rank), 1)), 1, rank - 1)
    total: Value | None = None
    for taps in product(*axes):
        flat = taps[0].index
        for tap, size in zip(taps[1:], sizes[1:], strict=True):
            flat = flat * _size(flat, size, I64) + tap.index
        line = flat.reshape((x.shape[0], size_of(places), const(1)))
        term = image.apply("gather_nd", line, attrs=GatherNdAttrs(1, "clip"))
        weights = [t.weight for t in taps if t.weight is not None]
        if weights:
            weight = reduce(lambda a, b: a * b, weights)
            term = term.cast(weight.dtype) * weight.reshape((*line.shape[:2], const(1)))
        total = term if total is None else total + term
    assert total is not None
    return transpose(total, (0, 2, 1)).reshape((x.shape[0], x.shape[1], *places))


@dataclass(frozen=True)
class _Axis:
    """One dimension of what a grid samples, see `ops.image.grid_sample`."""

    size: Expr
    attrs: GridSampleAttrs
    real: DType

    def length(self, like: Value) -> Value:
        return _size(like, self.size, self.real)

    @property
    def margin(self) -> float:
        """How far the border lies before the first element's centre."""
        return 0.0 if self.attrs.align_corners else 0.5

    def position(self, p: Value) -> Value:
        """A position from -1 to 1 in units of elements."""
        if self.attrs.align_corners:
            return (p + 1) * 0.5 * (self.length(p) - 1)
        return ((p + 1) * self.length(p) - 1) * 0.5

    def reflected(self, v: Value) -> Value:
        """A position beyond a border, reflected until it is between both."""
        low, high = -self.margin, self.length(v) - (1 - self.margin)
        span = high - low
        span = where(span.apply("less_or_equal", 0), span.number(1), span)
        below = v.apply("less", low)
        beyond = where(below, low - v, v - high)
        turns = (beyond / span).apply("floor")
        rest = beyond - turns * span
        even = ((turns * 0.5).apply("floor") * 2).apply("equal", turns)
        from_low = even.apply("equal", below)
        return where(from_low, rest + low, high - rest)

    def outside(self, v: Value) -> Value:
        high = self.length(v) - (1 - self.margin)
        return v.apply("less", -self.margin).apply("or", v.apply("greater", high))

    def inside(self, v: Value) -> Value:
        """A position as the padding moves it."""
        length, padding = self.length(v), self.attrs.position_padding
        if padding == "zeros":
            return v.apply("max", -SAMPLE_REACH).apply("min", length + SAMPLE_REACH)
        if padding == "border":
            moved = v.apply("max", 0).apply("min", length - 1)
        else:
            moved = self.reflected(v)
        return where(self.outside(v), moved, v)

    def tap(self, index: Value, weight: Value | None) -> _Tap:
        """An element by its number, which the padding moves, too."""
        padding = self.attrs.padding
        if padding == "reflection":
            v = index.cast(self.real)
            index = where(self.outside(v), self.reflected(v).cast(I64), index)
        if padding == "zeros" and weight is None:
            weight = (index - index + 1).cast(self.real)
        return _tap(index, weight, self.size, padding != "zeros")

    def taps(self, p: Value) -> list[_Tap]:
        """What a sample takes along this axis."""
        v = self.position(p)
        if self.attrs.mode == "nearest":
            return [self.tap(self.inside(v.apply("round")).cast(I64), None)]
        v = self.inside(v)
        floor = v.apply("floor")
        share, low = v - floor, floor.cast(I64)
        if self.attrs.mode == "linear":
            return [self.tap(low, 1 - share), self.tap(low + 1, share)]
        return [self.tap(low + (k - 1), w) for k, w in enumerate(_cubic_weights(share))]


def _grid_sample(g: GraphOps, attrs: GridSampleAttrs, ins: Sequence[str]) -> str:
    x, grid = (value(g, name) for name in ins)
    real = F64 if F64 in (x.dtype, grid.dtype) else F32
    rank, last = len(x.shape) - 2, len(grid.shape) - 1
    axes = []
    for axis in range(rank):
        number = rank - 1 - axis
        p = part(grid.cast(real), last, number, number + 1).reshape(grid.shape[:-1])
        axes.append(_Axis(x.shape[2 + axis], attrs, real).taps(p))
    return _sampled(x, axes).cast(x.dtype).name


def _deformable_im2col(g: GraphOps, attrs: DeformableIm2ColAttrs, ins: Sequence[str]) -> str:
    """Groups of channels are batches of their own; each has its offsets and its mask."""
    x, offset = (value(g, name) for name in ins[:2])
    batch, channels, *sizes = x.shape
    groups, kernel, windows = const(attrs.groups), attrs.kernel, offset.shape[2:]
    many, taps = simplify(batch * groups), const(prod(kernel))
    moved = wide(offset).reshape((many, taps, const(attrs.rank), *windows))
    image = x.reshape((many, simplify(channels // groups), *sizes))
    axes = []
    for axis, size in enumerate(sizes):
        own = part(moved, 2, axis, axis + 1).reshape((many, taps, *windows))
        base = _base(attrs, own, axis, windows).cast(own.dtype)
        axes.append(_linear(own + base, size, bounded=False))
    y = _sampled(image, axes)
    if len(ins) > 2 and ins[2]:
        y = y * wide(value(g, ins[2])).reshape((many, const(1), taps, *windows))
    shape = (batch, channels, *map(const, kernel), *windows)
    return y.cast(x.dtype).reshape(shape).name


def _base(attrs: DeformableIm2ColAttrs, like: Value, axis: int, windows: Shape) -> Value:
    """Where taps of windows lie along an axis before they are moved."""
    places = np.indices(attrs.kernel)[axis].reshape(-1).astype(np.int64)
    steps = places * attrs.dilations[axis] - attrs.before[axis]
    first = constant(like, steps.reshape(1, -1, *(1 for _ in windows)))
    line = tuple(n if d == axis else const(1) for d, n in enumerate(windows))
    counted = count_up(like, windows[axis]).reshape((const(1), const(1), *line))
    return first + counted * attrs.strides[axis]


def _roi_align(g: GraphOps, attrs: RoiAlignAttrs, ins: Sequence[str]) -> str:
    """All samples of a region as places of one image, joined to bins."""
    if not attrs.samples:
        raise UnsupportedError(
            "autodiff.samples",
            "the gradient of roi_align with as many samples as a region has elements",
            help="give a number of samples (`sampling_ratio`)",
        )
    x, rois, batch = (value(g, name) for name in ins)
    real, (rows, columns) = wide(x).dtype, attrs.size
    ends = [
        part(rois.cast(real), 1, k, k + 1) * attrs.scale - (0.5 if attrs.half_pixel else 0.0)
        for k in (1, 0, 3, 2)
    ]
    y = _region_taps(attrs, ends[0], ends[2], rows, x.shape[2])
    z = _region_taps(attrs, ends[1], ends[3], columns, x.shape[3])
    count, n, one = rois.shape[0], const(attrs.samples), const(1)
    image = transpose(x, (0, 2, 3, 1)).cast(real)
    # [regions, bins, samples, bins, samples, channels]
    shape = (count, const(rows), n, const(columns), n)
    corners = []
    for a, b in product(y, z):
        line = [
            batch.cast(I64).reshape((count, one, one, one, one)),
            a.index.reshape((count, const(rows), n, one, one)),
            b.index.reshape((count, one, one, const(columns), n)),
        ]
        tuples = _tuples(line, shape)
        found = image.apply("gather_nd", tuples, attrs=GatherNdAttrs(0, "raise"))
        assert a.weight is not None
        assert b.weight is not None
        near = a.weight.reshape((count, const(rows), n, one, one)) * b.weight.reshape(
            (count, one, one, const(columns), n)
        )
        corners.append(found * near.reshape((*shape, one)))
    op: Callable[[Value, Value], Value] = (
        (lambda a, b: a.apply("max", b)) if attrs.mode == "max" else (lambda a, b: a + b)
    )
    samples = reduce(op, corners)
    bins = reduced("max" if attrs.mode == "max" else "mean", samples, (2, 4), keepdims=False)
    return transpose(bins, (0, 3, 1, 2)).cast(x.dtype).name


def _tuples(indices: Sequence[Value], shape: Shape) -> Value:
    """Tuples of indices that are broadcast to a shape."""
    ones = (*shape, const(1))
    zeros = reduce(lambda a, b: a + b, (i * 0 for i in indices))
    every = [(i + zeros).reshape(ones) for i in indices]
    return every[0].apply("concat", *every[1:], attrs=ConcatAttrs(len(shape)))


def _region_taps(
    attrs: RoiAlignAttrs, start: Value, end: Value, bins: int, size: Expr
) -> list[_Tap]:
    """The two neighbours of each sample along an axis: [regions, bins * samples]."""
    length = end - start
    if not attrs.half_pixel:
        length = length.apply("max", 1)
    step = length / bins
    middles = (np.arange(attrs.samples) + 0.5) / attrs.samples
    steps = (np.arange(bins)[:, None] + middles).reshape(1, -1).astype(start.dtype.numpy)
    place = start + step * constant(start, steps)
    counts = place.apply("greater_or_equal", -1).apply(
        "and", place.apply("less_or_equal", _size(place, size, place.dtype))
    )
    last = _size(place, simplify(size - 1), I64)
    v = place.apply("max", 0).apply("min", last.cast(place.dtype))
    low = v.cast(I64).apply("min", last).apply("max", 0)
    share = v - low.cast(v.dtype)
    zero = share.number(0)
    return [
        _Tap(low, where(counts, 1 - share, zero)),
        _Tap((low + 1).apply("min", last), where(counts, share, zero)),
    ]


PARTS: dict[str, Parts] = {
    "grid_sample": _grid_sample,
    "deformable_im2col": _deformable_im2col,
    "roi_align": _roi_align,
}
NO_GRADIENT = {
    "max_roi_pool": "the elements of its bins are known only when it runs",
}
