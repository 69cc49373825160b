"""Resize: sampling a tensor on another grid, by the nearest element, linearly or cubically.

Along one axis output position `x` samples input position `(a * x + b) / c` with whole numbers `a`,
`b` and `c`: every coordinate transformation is of this form. Quotient and remainder are computed
in integers, so no rounding error can move a sample to its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tilewright.arith.expr import FALSE, Const, Expr, as_int, cast, const, maximum, minimum, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, F64, I64, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.interp import run_program
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.image.interpolate import (
    MODES,
    Tap,
    cubic_taps,
    linear_taps,
    weighted,
    whole_tap,
)
from tilewright.ops.op import Op, fail
from tilewright.ops.shape.assumptions import has_elements
from tilewright.ops.tensor.manipulation import static_sizes

# Ends of regions are multiples of 1 by this, so that products with sizes have room in 64 bits.
ROI_UNITS = 1 << 26
# How many times as far as an image is long a region of it may end.
MAX_ROI = 256.0


@node
class ResizeAttrs(Attrs):
    """The new shape and how to sample; one size, scale and region a dimension.

    A scale is a pair (numerator, denominator) of expressions: output size by input size, before
    rounding. `roi` holds the start and end of the sampled part, used by `tf_crop_and_resize`.
    """

    shape: tuple[Expr, ...]
    scales: tuple[tuple[Expr, Expr], ...]
    mode: str = "nearest"
    transform: str = "half_pixel"
    rounding: str = "round_prefer_floor"
    cubic_coeff: float = -0.75
    exclude_outside: bool = False
    extrapolation: float = 0.0
    roi: tuple[tuple[float, float], ...] = ()


@node
class Axis:
    """What a coordinate transformation depends on along one dimension."""

    size: Expr
    new_size: Expr
    scale: tuple[Expr, Expr]
    roi: tuple[float, float]


@node
class Grid:
    """Output position `x` samples `(a * x + b) / c`; `c` is above 0."""

    a: Expr
    b: Expr
    c: Expr


def _half_pixel(d: Axis) -> Grid:
    """`(x + 1/2) / scale - 1/2`."""
    p, q = d.scale
    return Grid(q * 2, q - p, p * 2)


def _tf_half_pixel_for_nn(d: Axis) -> Grid:
    """`(x + 1/2) / scale`: an older form, meant for the nearest element."""
    p, q = d.scale
    return Grid(q * 2, q, p * 2)


def _pytorch_half_pixel(d: Axis) -> Grid:
    """As half_pixel, but a single output element samples the first input element."""
    grid, several = _half_pixel(d), const(1) < d.new_size
    return Grid(select(several, grid.a, 0), select(several, grid.b, 0), grid.c)


def _half_pixel_symmetric(d: Axis) -> Grid:
    """As half_pixel, with what rounding the size cut off spread over both ends."""
    p, q = d.scale
    return Grid(q * 2, d.size * p - d.new_size * q + q - p, p * 2)


def _asymmetric(d: Axis) -> Grid:
    """`x / scale`."""
    return Grid(d.scale[1], const(0), d.scale[0])


def _align_corners(d: Axis) -> Grid:
    """First and last elements of both grids coincide.

    The last element of the new grid lies at `size * scale - 1`, before its size is rounded down.
    """
    p, q = d.scale
    if isinstance(q, Const) and simplify(d.size * p % q) is not const(0):
        return Grid((d.size - 1) * q, const(0), maximum(d.size * p - q, 1))
    return Grid(d.size - 1, const(0), maximum(d.new_size - 1, 1))


def _crop_and_resize(d: Axis) -> Grid:
    """The region of interest, its ends aligned with the first and last output elements."""
    unit = ROI_UNITS
    first, last = (round(v * unit) for v in d.roi)
    several, intervals = const(1) < d.new_size, maximum(d.new_size - 1, 1)
    far = d.size - 1
    # A single element samples the middle of the region.
    origin = select(several, far * (2 * first) * intervals, far * (first + last))
    return Grid(select(several, far * (2 * (last - first)), 0), origin, intervals * (2 * unit))


TRANSFORMS: dict[str, Callable[[Axis], Grid]] = {
    "half_pixel": _half_pixel,
    "half_pixel_symmetric": _half_pixel_symmetric,
    "tf_half_pixel_for_nn": _tf_half_pixel_for_nn,
    "pytorch_half_pixel": _pytorch_half_pixel,
    "align_corners": _align_corners,
    "asymmetric": _asymmetric,
    "tf_crop_and_resize": _crop_and_resize,
}

# `n / c` as a whole number.
ROUNDINGS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "floor": lambda n, c: n // c,
    "ceil": lambda n, c: (n + c - 1) // c,
    "round_prefer_floor": lambda n, c: (n * 2 + c - 1) // (c * 2),
    "round_prefer_ceil": lambda n, c: (n * 2 + c) // (c * 2),
}


def _resize_type(attrs: ResizeAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    if not len(attrs.shape) == len(attrs.scales) == x.rank:
        raise fail("resize", f"{x} needs one size and one scale a dimension")
    if x.dtype.kind == "complex" and attrs.mode != "nearest":
        raise fail("resize", f"complex numbers are not interpolated: {x}")
    for given, table in (
        (attrs.mode, MODES),
        (attrs.transform, TRANSFORMS),
        (attrs.rounding, ROUNDINGS),
    ):
        if given not in table:
            raise fail("resize", f"no mode {given!r}", f"use one of {', '.join(table)}")
    if attrs.transform == "tf_crop_and_resize" and len(attrs.roi) != x.rank:
        raise fail("resize", "tf_crop_and_resize needs a region of interest")
    if not all(abs(v) <= MAX_ROI for ends in attrs.roi for v in ends):
        raise fail("resize", f"the region {attrs.roi} ends beyond {MAX_ROI} images")
    if not all(has_elements("resize", size, attrs.shape) for size in x.shape):
        raise fail("resize", f"{x} has no elements to sample")
    return TensorType(x.dtype, tuple(simplify(d) for d in attrs.shape))


def _axes(attrs: ResizeAttrs, shape: Shape) -> list[Axis]:
    roi = attrs.roi or ((0.0, 1.0),) * len(shape)
    return [Axis(*each) for each in zip(shape, attrs.shape, attrs.scales, roi, strict=True)]


def _is_kept(d: Axis, attrs: ResizeAttrs) -> bool:
    """Whether a dimension is not resampled at all."""
    whole = attrs.transform != "tf_crop_and_resize" or d.roi == (0.0, 1.0)
    return whole and d.size is simplify(d.new_size) and d.scale[0] is d.scale[1]


def _clamped(i: Expr, size: Expr) -> Expr:
    return simplify(minimum(maximum(i, 0), size - 1))


def _taps(attrs: ResizeAttrs, d: Axis, n: Expr, c: Expr, dtype: DType) -> list[Tap]:
    """Where an output element samples along one axis, every position in bounds."""
    if attrs.mode == "nearest":
        return whole_tap(_clamped(ROUNDINGS[attrs.rounding](n, c), d.size), dtype)
    floor = simplify(n // c)
    part = cast(dtype, simplify(n % c)) / cast(dtype, simplify(c))
    is_linear = attrs.mode == "linear"
    taps = linear_taps(floor, part) if is_linear else cubic_taps(floor, part, attrs.cubic_coeff)
    if attrs.exclude_outside:
        taps = _renormalized(taps, d.size, dtype)
    return [Tap(_clamped(t.index, d.size), t.weight) for t in taps]


def _renormalized(taps: Sequence[Tap], size: Expr, dtype: DType) -> list[Tap]:
    """Taps whose weights inside sum to 1, and are 0 outside."""
    zero = const(0, dtype)
    inside = [(const(0) <= t.index) & (t.index < size) for t in taps]
    weights = [select(i, t.weight, zero) for i, t in zip(inside, taps, strict=True)]
    total: Expr = zero
    for w in weights:
        total = total + w
    return [Tap(t.index, w / total) for t, w in zip(taps, weights, strict=True)]


def _resize(
    b: Builder, attrs: ResizeAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]
    axes = _axes(attrs, x.shape)
    real = F64 if x.dtype == F64 else F32

    def element(*i: Expr) -> Expr:
        choices: list[list[Tap]] = []
        outside: Expr = FALSE
        for d, e in zip(axes, i, strict=True):
            if _is_kept(d, attrs):
                choices.append(whole_tap(e, real))
                continue
            grid = TRANSFORMS[attrs.transform](d)
            n, c = simplify(grid.a * e + grid.b), simplify(grid.c)
            choices.append(_taps(attrs, d, n, c, real))
            if attrs.transform == "tf_crop_and_resize":
                outside = outside | (n < 0) | (simplify((d.size - 1) * c) < n)
        value = cast(x.dtype, weighted(x, choices, real))
        return select(outside, const(attrs.extrapolation, x.dtype), value)

    return b.compute("y", outs[0].shape, element)


def resampled_axes(attrs: ResizeAttrs, shape: Shape) -> tuple[int, ...]:
    """The dimensions of a tensor of `shape` along which elements are sampled."""
    return tuple(d for d, axis in enumerate(_axes(attrs, shape)) if not _is_kept(axis, attrs))


def along_axis(attrs: ResizeAttrs, shape: Shape, axis: int) -> ResizeAttrs:
    """Sampling along one axis only, all others kept."""
    one = const(1), const(1)
    return replace(
        attrs,
        shape=tuple(n if d == axis else shape[d] for d, n in enumerate(attrs.shape)),
        scales=tuple(n if d == axis else one for d, n in enumerate(attrs.scales)),
    )


def sample_tables(
    attrs: ResizeAttrs, shape: Shape, axis: int, dtype: DType
) -> tuple[np.ndarray, np.ndarray] | None:
    """Where each output element samples along an axis and with which weights, a row a tap.

    `None` where sizes are not known, or elements lie outside of what is sampled.
    """
    d = _axes(attrs, shape)[axis]
    sizes = static_sizes((d.size, d.new_size, *d.scale))
    if sizes is None or 0 in sizes[:2] or attrs.transform == "tf_crop_and_resize":
        return None
    grid = TRANSFORMS[attrs.transform](d)
    b = Builder("tables")

    def column(number: int, part: int) -> Tensor:
        def element(x: Expr) -> Expr:
            n, c = simplify(grid.a * x + grid.b), simplify(grid.c)
            tap = _taps(attrs, d, n, c, dtype)[number]
            return tap.weight if part else tap.index

        return b.compute(f"tap{number}_{part}", (d.new_size,), element)

    taps = [(column(k, 0), column(k, 1)) for k in range(MODES[attrs.mode])]
    found = run_program(b.program(*(t for tap in taps for t in tap)), {}, {})
    places = np.stack([found[place.name] for place, _ in taps])
    return places, np.stack([found[weight.name] for _, weight in taps])


def _resample_type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    x, places, weights = ins
    if x.rank == 0 or places.rank != 2 or places.shape != weights.shape:
        raise fail("resample", f"{x} along its last axis by {places} and {weights}")
    if places.dtype != I64 or weights.dtype != x.dtype or as_int(places.shape[0]) is None:
        raise fail("resample", f"places {places} and weights {weights} do not fit {x}")
    return TensorType(x.dtype, (*x.shape[:-1], places.shape[1]))


def _resample(b: Builder, _: Attrs, ins: Sequence[Tensor], outs: Sequence[TensorType]) -> Tensor:
    x, places, weights = ins
    count = as_int(places.shape[0])
    assert count is not None

    def element(*i: Expr) -> Expr:
        taps = [x.at(*i[:-1], places.at(k, i[-1])) * weights.at(k, i[-1]) for k in range(count)]
        total: Expr = taps[0]
        for tap in taps[1:]:
            total = total + tap
        return total

    return b.compute("y", outs[0].shape, element)


def _resample_flops(_: Attrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    return outs[0].elements * ins[1].shape[0] * 2


def _resize_flops(
    attrs: ResizeAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Expr:
    resampled = sum(a is not b for a, b in zip(ins[0].shape, outs[0].shape, strict=True))
    taps = MODES[attrs.mode] ** resampled
    return outs[0].elements * const(2 * taps)


def _row(name: str, kind: str, doc: str) -> Op:
    return Op(name, _resize_type, kind, ResizeAttrs, te=_resize, flops=_resize_flops, doc=doc)


# Two rows, since only the nearest element can be read through a fused producer at no extra cost.
OPS = (
    _row("resize_nearest", "injective", "A tensor sampled on another grid, nearest elements."),
    _row("resize", "out_fusable", "A tensor sampled on another grid, linearly or cubically."),
    Op(
        "resample",
        _resample_type,
        "out_fusable",
        te=_resample,
        flops=_resample_flops,
        doc="Weighted sums along the last axis: where to read, and the weights, a row a tap.",
    ),
)
