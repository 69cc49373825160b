"""A transposed convolution as plain convolutions of the input, several results a pixel.

With stride `s`, the outputs at `s * q + r` use only the taps `r, r + s, ...` of the kernel:
each of the `s` phases `r` is a convolution with an `s`-th of the taps. Phases of equally many taps
are one convolution with so many times the channels; all results are then interleaved:

    kernel 4, stride 2:   [a b c d]   →   channels [a c] and [b d], output = phase 0, 1, 0, 1, ...
    kernel 3, stride 2:   [a b c]     →   a convolution with [a c], and one with [b]

No tap meets a zero between input elements, and no input element a zero beside the taps: with an
infinite one that would be NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import simplify
from tilewright.ir.types import Shape
from tilewright.ops.conv.conv import ConvAttrs, ConvTransposeAttrs, conv_transpose_type
from tilewright.ops.op import GraphOps
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs, SliceAttrs


class Phases(NamedTuple):
    """Neighbouring phases of one axis that have equally many taps."""

    first: int
    number: int
    taps: int


def split_phases(kernel: int, stride: int) -> tuple[Phases, ...]:
    """The phases of an axis, those with one tap more first."""
    taps, longer = divmod(kernel, stride)
    found = (Phases(0, longer, taps + 1), Phases(longer, stride - longer, taps))
    return tuple(phases for phases in found if phases.number)


def convolve_phases(g: GraphOps, attrs: ConvTransposeAttrs, x: str, w: str) -> str | None:
    """`conv_transpose(x, w)` in this form, `None` where it does not apply.

    It applies to constant weights, channels-first data, and strides or dilations, not both. Weights
    meet the zeros around the input, so that they must be finite.
    """
    weights, unit = g.constant_data(w), (1,) * attrs.rank
    if weights is None or attrs.layout != "channels_first" or not np.isfinite(weights).all():
        return None
    if unit not in (attrs.dilations, attrs.strides):
        return None
    axes = [split_phases(k, s) for k, s in zip(weights.shape[2:], attrs.strides, strict=True)]
    if min(_pads(attrs, weights.shape[2:], [min(a, key=_reach) for a in axes])) < 0:
        return None
    shape = conv_transpose_type(attrs, [g.type(x), g.type(w)]).shape
    return _interleaved(g, attrs, _joined(g, attrs, x, w, axes, ()), shape)


def _reach(phases: Phases) -> float:
    """How many taps are convolved; no convolution at all asks for nothing."""
    return phases.taps or float("inf")


def _pads(
    attrs: ConvTransposeAttrs, kernel: Sequence[int], chosen: Sequence[Phases]
) -> tuple[int, ...]:
    """Padding that makes phases start with the first output's, and reach the last one."""
    before = [
        (phases.taps - 1) * d - p // s
        for phases, d, p, s in zip(
            chosen, attrs.dilations, attrs.before, attrs.strides, strict=True
        )
    ]
    after = [
        ((k - 1) * d + extra - p) // s
        for k, d, extra, p, s in zip(
            kernel, attrs.dilations, attrs.output_padding, attrs.after, attrs.strides, strict=True
        )
    ]
    return (*before, *after)


def _joined(
    g: GraphOps,
    attrs: ConvTransposeAttrs,
    x: str,
    w: str,
    axes: Sequence[tuple[Phases, ...]],
    chosen: tuple[Phases, ...],
) -> str:
    """Results `[batch, out, phases..., where...]`, those of the first axes as `chosen`."""
    axis = len(chosen)
    if axis == attrs.rank:
        return _convolved(g, attrs, x, w, chosen)
    parts = [_joined(g, attrs, x, w, axes, (*chosen, phases)) for phases in axes[axis]]
    return parts[0] if len(parts) == 1 else g.add("concat", *parts, attrs=ConcatAttrs(2 + axis))


def _convolved(
    g: GraphOps, attrs: ConvTransposeAttrs, x: str, w: str, chosen: Sequence[Phases]
) -> str:
    """The results of some phases; those that no tap reaches are 0."""
    weights, unit = g.constant_data(w), (1,) * attrs.rank
    assert weights is not None
    counts, taps = (tuple(p.number for p in chosen), [p.taps for p in chosen])
    pads = _pads(attrs, weights.shape[2:], chosen)
    batch, channels = g.type(x).shape[0], const(weights.shape[1] * attrs.groups)
    sizes = [
        simplify(n + (before + after - (t - 1) * d))
        for n, before, after, t, d in zip(
            g.type(x).shape[2:],
            pads[: attrs.rank],
            pads[attrs.rank :],
            taps,
            attrs.dilations,
            strict=True,
        )
    ]
    shape = (batch, channels, *map(const, counts), *sizes)
    if 0 in taps:
        return g.add("full", attrs=FullAttrs(shape, 0, g.type(x).dtype))
    packed = g.constant(phase_weights(weights, attrs, chosen), f"{w}.phases")
    plain = ConvAttrs(unit, pads, attrs.dilations, groups=attrs.groups)
    return g.add("reshape", g.add("conv", x, packed, attrs=plain), attrs=ReshapeAttrs(shape))


def phase_weights(
    weights: np.ndarray, attrs: ConvTransposeAttrs, chosen: Sequence[Phases]
) -> np.ndarray:
    """Weights `[in, out / groups, kernel...]` as `[out * phases, in / groups, taps...]`."""
    rank, groups = attrs.rank, attrs.groups
    group_in, group_out = weights.shape[0] // groups, weights.shape[1]
    parts = weights.reshape(groups, group_in, group_out, *weights.shape[2:])
    for axis in reversed(range(rank)):
        first, count, taps = chosen[axis]
        # A transposed convolution runs through the taps backwards.
        backwards = attrs.strides[axis] * np.arange(taps)[::-1, None]
        parts = np.take(parts, first + np.arange(count) + backwards, 3 + axis)
    tap_axes, phase_axes = range(3, 3 + 2 * rank, 2), range(4, 3 + 2 * rank, 2)
    transposed = parts.transpose(0, 2, *phase_axes, 1, *tap_axes)
    out = groups * group_out * prod(phases.number for phases in chosen)
    return np.ascontiguousarray(transposed).reshape(out, group_in, *(p.taps for p in chosen))


def _interleaved(g: GraphOps, attrs: ConvTransposeAttrs, phases: str, shape: Shape) -> str:
    """The results of all phases in the order of positions, cut to the output's extent."""
    rank, sizes = attrs.rank, g.type(phases).shape[2 + attrs.rank :]
    order = [d for axis in range(rank) for d in (2 + rank + axis, 2 + axis)]
    joined = tuple(simplify(n * s) for n, s in zip(sizes, attrs.strides, strict=True))
    y = g.add("transpose", phases, attrs=TransposeAttrs((0, 1, *order)))
    y = g.add("reshape", y, attrs=ReshapeAttrs((*shape[:2], *joined)))
    if joined == shape[2:]:
        return y
    starts: list[Expr] = [const(p % s) for p, s in zip(attrs.before, attrs.strides, strict=True)]
    stops = [simplify(n + p) for n, p in zip(shape[2:], starts, strict=True)]
    zero = const(0)
    cut = SliceAttrs((zero, zero, *starts), (*shape[:2], *stops), (1,) * (rank + 2))
    return g.add("slice", y, attrs=cut)
