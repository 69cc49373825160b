"""Resize: sampling a tensor on another grid, by the nearest element, linearly or cubically.

Along one axis output position `x` samples input position `(a * x + b) / c` with whole numbers `a`,
`b` and `c`: every coordinate transformation is of this form. Quotient and remainder are computed
in integers, so no rounding error can move a sample to its neighbour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from tilewright.arith.expr import FALSE, Expr, cast, const, maximum, minimum, select
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F32, F64, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.row import Op, fail


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
    """First and last elements of both grids coincide."""
    return Grid(d.size - 1, const(0), maximum(d.new_size - 1, 1))


def _crop_and_resize(d: Axis) -> Grid:
    """The region of interest, its ends aligned with the first and last output elements."""
    start, end = (Fraction(v) for v in d.roi)
    unit = start.denominator * end.denominator
    first, last = int(start * unit), int(end * unit)
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

# A sample is a weighted sum of elements: pairs of position (maybe outside) and weight.
Taps = list[tuple[Expr, Expr]]


def _linear_taps(floor: Expr, part: Expr, _: ResizeAttrs) -> Taps:
    one = const(1, part.dtype)
    return [(floor, one - part), (floor + 1, part)]


def _cubic_taps(floor: Expr, part: Expr, attrs: ResizeAttrs) -> Taps:
    def number(v: float) -> Expr:
        return const(v, part.dtype)

    a, one = attrs.cubic_coeff, number(1)

    def near(t: Expr) -> Expr:  # |distance| <= 1
        return (number(a + 2) * t - number(a + 3)) * t * t + one

    def far(t: Expr) -> Expr:  # 1 < |distance| < 2
        return ((number(a) * t - number(5 * a)) * t + number(8 * a)) * t - number(4 * a)

    weights = [far(part + one), near(part), near(one - part), far(one - part + one)]
    return [(floor + (k - 1), w) for k, w in enumerate(weights)]


_TAPS: dict[str, Callable[[Expr, Expr, ResizeAttrs], Taps]] = {
    "linear": _linear_taps,
    "cubic": _cubic_taps,
}
MODES = ("nearest", *_TAPS)


def _resize_type(attrs: ResizeAttrs, ins: Sequence[TensorType]) -> TensorType:
    x = ins[0]
    if not len(attrs.shape) == len(attrs.scales) == x.rank:
        raise fail("resize", f"{x} needs one size and one scale a dimension")
    for given, table in (
        (attrs.mode, MODES),
        (attrs.transform, TRANSFORMS),
        (attrs.rounding, ROUNDINGS),
    ):
        if given not in table:
            raise fail("resize", f"no mode {given!r}", f"use one of {', '.join(table)}")
    if attrs.transform == "tf_crop_and_resize" and len(attrs.roi) != x.rank:
        raise fail("resize", "tf_crop_and_resize needs a region of interest")
    return TensorType(x.dtype, tuple(simplify(d) for d in attrs.shape))


def _axes(attrs: ResizeAttrs, x: Tensor) -> list[Axis]:
    roi = attrs.roi or ((0.0, 1.0),) * len(x.shape)
    return [Axis(*each) for each in zip(x.shape, attrs.shape, attrs.scales, roi, strict=True)]


def _is_kept(d: Axis, attrs: ResizeAttrs) -> bool:
    """Whether a dimension is not resampled at all."""
    whole = attrs.transform != "tf_crop_and_resize" or d.roi == (0.0, 1.0)
    return whole and d.size is simplify(d.new_size) and d.scale[0] is d.scale[1]


def _clamped(i: Expr, size: Expr) -> Expr:
    return simplify(minimum(maximum(i, 0), size - 1))


def _taps(attrs: ResizeAttrs, d: Axis, n: Expr, c: Expr, dtype: DType) -> Taps:
    """Where an output element samples along one axis, every position in bounds."""
    if attrs.mode == "nearest":
        return [(_clamped(ROUNDINGS[attrs.rounding](n, c), d.size), const(1, dtype))]
    floor = simplify(n // c)
    part = cast(dtype, simplify(n % c)) / cast(dtype, simplify(c))
    taps = _TAPS[attrs.mode](floor, part, attrs)
    if attrs.exclude_outside:
        zero = const(0, dtype)
        taps = [(i, select((const(0) <= i) & (i < d.size), w, zero)) for i, w in taps]
        total: Expr = zero
        for _, w in taps:
            total = total + w
        taps = [(i, w / total) for i, w in taps]
    return [(_clamped(i, d.size), w) for i, w in taps]


def _resize(
    b: Builder, attrs: ResizeAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x = ins[0]
    axes = _axes(attrs, x)
    real = F64 if x.dtype == F64 else F32

    def element(*i: Expr) -> Expr:
        choices: list[Taps] = []
        outside: Expr = FALSE
        for d, e in zip(axes, i, strict=True):
            if _is_kept(d, attrs):
                choices.append([(e, const(1, real))])
                continue
            grid = TRANSFORMS[attrs.transform](d)
            n, c = simplify(grid.a * e + grid.b), simplify(grid.c)
            choices.append(_taps(attrs, d, n, c, real))
            if attrs.transform == "tf_crop_and_resize":
                outside = outside | (n < 0) | (simplify((d.size - 1) * c) < n)
        value = cast(x.dtype, _weighted(x, choices, (), attrs.mode == "nearest", real))
        return select(outside, const(attrs.extrapolation, x.dtype), value)

    return b.compute("y", outs[0].shape, element)


def _weighted(
    x: Tensor, choices: Sequence[Taps], index: tuple[Expr, ...], exact: bool, real: DType
) -> Expr:
    """The sum over all combinations of taps, one axis after the other."""
    if len(index) == len(choices):
        return x.at(*index) if exact else cast(real, x.at(*index))
    taps = choices[len(index)]
    inner = [_weighted(x, choices, (*index, i), exact, real) for i, _ in taps]
    if len(taps) == 1:
        return inner[0]
    total = inner[0] * taps[0][1]
    for value, (_, weight) in zip(inner[1:], taps[1:], strict=True):
        total = total + value * weight
    return total


def _resize_flops(
    attrs: ResizeAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]
) -> Expr:
    resampled = sum(a is not b for a, b in zip(ins[0].shape, outs[0].shape, strict=True))
    taps = {"nearest": 1, "linear": 2, "cubic": 4}[attrs.mode] ** resampled
    return outs[0].elements * const(2 * taps)


def _row(name: str, kind: str, doc: str) -> Op:
    return Op(name, _resize_type, kind, ResizeAttrs, te=_resize, flops=_resize_flops, doc=doc)


# Two rows, since only the nearest element can be read through a fused producer at no extra cost.
OPS = (
    _row("resize_nearest", "injective", "A tensor sampled on another grid, nearest elements."),
    _row("resize", "complex", "A tensor sampled on another grid, linearly or cubically."),
)
