"""Sampling at positions that a tensor gives: grid_sample.

The grid holds positions from -1 to 1 across each dimension, the last dimension first. What lies
outside is zero, the nearest border, or the image reflected at its borders.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, call, cast, const, maximum, minimum, select
from tilewright.core.dtypes import F32, F64, I64, DType
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.image.interpolate import (
    MODES,
    Tap,
    cubic_taps,
    linear_taps,
    weighted,
    whole_tap,
)
from tilewright.ops.op import Op, fail
from tilewright.ops.shape.assumptions import has_elements, same_size

PADDINGS = ("zeros", "border", "reflection")
CUBIC_COEFFICIENT = -0.75
# A sample reaches less far than this beyond the position that it is taken at.
SAMPLE_REACH = 4


@node
class GridSampleAttrs(Attrs):
    """How to interpolate, what lies outside, and whether -1 and 1 are centres of elements.

    A position outside is moved to the border or reflected there. With `moves` off the border moves
    only each element that is taken for it: cubic interpolation of torch.
    """

    mode: str = "linear"
    padding: str = "zeros"
    align_corners: bool = False
    moves: bool = True

    @property
    def position_padding(self) -> str:
        """What is done with a position outside; zeros leave it there."""
        return self.padding if self.moves else "zeros"


def _type(attrs: GridSampleAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, grid = ins
    if attrs.mode not in MODES or attrs.padding not in PADDINGS:
        raise fail("grid_sample", f"no mode {attrs.mode!r} with padding {attrs.padding!r}")
    if x.dtype.kind == "complex" and attrs.mode != "nearest":
        raise fail("grid_sample", f"complex numbers are not interpolated: {x}")
    if x.rank < 3 or grid.rank != x.rank or not grid.dtype.is_float:
        raise fail("grid_sample", f"a grid {grid} does not fit {x}")
    if grid.shape[-1] is not const(x.rank - 2):
        raise fail("grid_sample", f"positions of {grid} are not {x.rank - 2} numbers")
    batch = same_size("grid_sample", x.shape[0], grid.shape[0])
    if batch is None:
        raise fail("grid_sample", f"{x} and {grid} differ in batch size")
    shape = (batch, x.shape[1], *grid.shape[1:-1])
    if attrs.padding != "zeros" and not all(
        has_elements("grid_sample", size, shape) for size in x.shape[2:]
    ):
        raise fail("grid_sample", f"{x} has no elements at its border")
    return TensorType(x.dtype, shape)


@node
class _Axis:
    """One dimension: its size, and the borders beyond which positions are outside."""

    size: Expr
    length: Expr
    low: Expr
    high: Expr


def _axis(size: Expr, align_corners: bool, real: DType) -> _Axis:
    length = cast(real, size)
    margin = 0.0 if align_corners else 0.5
    return _Axis(size, length, const(-margin, real), length - const(1 - margin, real))


def _position(p: Expr, d: _Axis, align_corners: bool) -> Expr:
    """A position from -1 to 1 in units of elements."""
    one, half = const(1, p.dtype), const(0.5, p.dtype)
    if align_corners:
        return (p + one) * half * (d.length - one)
    return ((p + one) * d.length - one) * half


def _reflected(v: Expr, d: _Axis) -> Expr:
    """A position beyond a border, reflected at the borders until it is between them."""
    one, half = const(1, v.dtype), const(0.5, v.dtype)
    span = d.high - d.low
    span = select(span <= const(0, v.dtype), one, span)
    is_below = v < d.low
    beyond = select(is_below, d.low - v, v - d.high)
    turns = call("floor", beyond / span)
    rest = beyond - turns * span
    is_even = (call("floor", turns * half) * const(2, v.dtype)).eq(turns)
    return select(is_even.eq(is_below), d.low + rest, d.high - rest)


def _inside(v: Expr, d: _Axis, padding: str) -> Expr:
    """A position as the padding moves it; where all is zero, far away is as good as farther."""
    zero, one, reach = const(0, v.dtype), const(1, v.dtype), const(SAMPLE_REACH, v.dtype)
    if padding == "zeros":
        return minimum(maximum(v, -reach), d.length + reach)
    if padding == "border":
        moved = minimum(maximum(v, zero), d.length - one)
    else:
        moved = _reflected(v, d)
    return select((v < d.low) | (d.high < v), moved, v)


def _padded(tap: Tap, d: _Axis, padding: str, real: DType) -> Tap:
    """A tap whose index is in bounds, or that is not inside."""
    i = tap.index
    if padding == "zeros":
        inside = (const(0) <= i) & (i < d.size)
        return Tap(minimum(maximum(i, 0), d.size - 1), tap.weight, inside)
    if padding == "reflection":
        v = cast(real, i)
        i = select((v < d.low) | (d.high < v), cast(I64, _reflected(v, d)), i)
    return Tap(minimum(maximum(i, 0), d.size - 1), tap.weight)


def _taps(attrs: GridSampleAttrs, p: Expr, size: Expr) -> list[Tap]:
    """What a sample takes along an axis of this size."""
    d = _axis(size, attrs.align_corners, p.dtype)
    v = _position(p, d, attrs.align_corners)
    if attrs.mode == "nearest":
        taps = whole_tap(
            cast(I64, _inside(call("round_even", v), d, attrs.position_padding)), p.dtype
        )
    else:
        v = _inside(v, d, attrs.position_padding)
        floor = call("floor", v)
        whole, part = cast(I64, floor), v - floor
        is_linear = attrs.mode == "linear"
        taps = linear_taps(whole, part) if is_linear else cubic_taps(whole, part, CUBIC_COEFFICIENT)
    return [_padded(t, d, attrs.padding, p.dtype) for t in taps]


def _grid_sample(
    b: Builder, attrs: GridSampleAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, grid = ins
    rank = len(x.shape) - 2
    real = F64 if F64 in (x.dtype, grid.dtype) else F32

    def element(n: Expr, c: Expr, *place: Expr) -> Expr:
        choices = [whole_tap(n, real), whole_tap(c, real)]
        for axis in range(rank):
            p = cast(real, grid.at(n, *place, const(rank - 1 - axis)))
            choices.append(_taps(attrs, p, x.shape[2 + axis]))
        return cast(x.dtype, weighted(x, choices, real))

    return b.compute("y", outs[0].shape, element)


def _flops(attrs: GridSampleAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    rank = ins[0].rank - 2
    return outs[0].elements * const(2 * MODES[attrs.mode] ** rank + 8 * rank)


OPS = (
    Op(
        "grid_sample",
        _type,
        "out_fusable",
        GridSampleAttrs,
        te=_grid_sample,
        flops=_flops,
        doc="An image sampled at the positions of a grid, which count from -1 to 1.",
    ),
)
