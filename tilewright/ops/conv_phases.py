"""A strided transposed convolution as one plain convolution of the input, several results a pixel.

With stride `s`, the outputs at `s * q + r` use only the taps `r, r + s, ...` of the kernel:
each of the `s` phases `r` is a convolution with an `s`-th of the taps. All phases together are one
convolution with `s` times the channels, whose results are then interleaved:

    kernel 4, stride 2:   [a b c d]   →   channels [a c] and [b d], output = phase 0, 1, 0, 1, ...

No tap meets a zero between input elements, which in the direct form all but one in `s` do.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tilewright.arith.expr import Expr, const
from tilewright.arith.simplify import simplify
from tilewright.ir.types import Shape
from tilewright.ops.conv import ConvAttrs, ConvTransposeAttrs, conv_transpose_type
from tilewright.ops.layout import ReshapeAttrs, TransposeAttrs
from tilewright.ops.slicing import SliceAttrs

if TYPE_CHECKING:
    from tilewright.ops.build import GraphBuilder


def convolve_phases(g: GraphBuilder, attrs: ConvTransposeAttrs, x: str, w: str) -> str | None:
    """`conv_transpose(x, w)` in this form, `None` where it does not apply.

    It applies to constant weights, channels-first data, and strides other than 1 without dilation.
    """
    weights, unit = g.constant_data(w), (1,) * attrs.rank
    if weights is None or attrs.layout != "channels_first":
        return None
    if attrs.dilations != unit or attrs.strides == unit:
        return None
    out = conv_transpose_type(attrs, [g.type(x), g.type(w)])
    pads = _phase_pads(attrs, weights.shape[2:])
    if min(pads) < 0:
        return None
    packed = g.constant(phase_weights(weights, attrs), f"{w}.phases")
    plain = ConvAttrs(unit, pads, unit, groups=attrs.groups)
    return _interleaved(g, attrs, g.add("conv", x, packed, attrs=plain), out.shape)


def _phase_pads(attrs: ConvTransposeAttrs, kernel: Sequence[int]) -> tuple[int, ...]:
    """Padding that makes every phase start with the first output's, and reach the last one."""
    axes = list(zip(kernel, attrs.strides, strict=True))
    before = [-(-k // s) - 1 - p // s for (k, s), p in zip(axes, attrs.before, strict=True)]
    after = [
        -(-(k + extra - p) // s) - 1
        for (k, s), extra, p in zip(axes, attrs.output_padding, attrs.after, strict=True)
    ]
    return (*before, *after)


def phase_weights(weights: np.ndarray, attrs: ConvTransposeAttrs) -> np.ndarray:
    """Weights `[in, out / groups, kernel...]` as `[out * phases, in / groups, taps...]`."""
    rank, groups = attrs.rank, attrs.groups
    missing = [-k % s for k, s in zip(weights.shape[2:], attrs.strides, strict=True)]
    full = np.pad(weights, [(0, 0), (0, 0), *((0, m) for m in missing)])
    split = [n for k, s in zip(full.shape[2:], attrs.strides, strict=True) for n in (k // s, s)]
    group_in, group_out = full.shape[0] // groups, full.shape[1]
    parts = full.reshape(groups, group_in, group_out, *split)
    taps, phases = range(3, 3 + 2 * rank, 2), range(4, 3 + 2 * rank, 2)
    # A transposed convolution runs through the taps backwards.
    turned = np.flip(parts, tuple(taps)).transpose(0, 2, *phases, 1, *taps)
    shape = (groups * group_out * prod(attrs.strides), group_in, *split[::2])
    return np.ascontiguousarray(turned).reshape(shape)


def _interleaved(g: GraphBuilder, attrs: ConvTransposeAttrs, phases: str, shape: Shape) -> str:
    """The results of all phases in the order of positions, cut to the output's extent."""
    rank, strides = attrs.rank, tuple(const(s) for s in attrs.strides)
    sizes = g.type(phases).shape[2:]
    split = (*shape[:2], *strides, *sizes)
    order = [d for axis in range(rank) for d in (2 + rank + axis, 2 + axis)]
    joined = tuple(simplify(n * s) for n, s in zip(sizes, strides, strict=True))
    y = g.add("reshape", phases, attrs=ReshapeAttrs(split))
    y = g.add("transpose", y, attrs=TransposeAttrs((0, 1, *order)))
    y = g.add("reshape", y, attrs=ReshapeAttrs((*shape[:2], *joined)))
    if joined == shape[2:]:
        return y
    starts: list[Expr] = [const(p % s) for p, s in zip(attrs.before, attrs.strides, strict=True)]
    stops = [simplify(n + p) for n, p in zip(shape[2:], starts, strict=True)]
    zero = const(0)
    cut = SliceAttrs((zero, zero, *starts), (*shape[:2], *stops), (1,) * (rank + 2))
    return g.add("slice", y, attrs=cut)
