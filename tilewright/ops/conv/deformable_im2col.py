"""Sampling at offset positions: the im2col step of a deformable convolution.

Tap `k` of window `p` reads the input at `p * stride + k * dilation - pad + offset`, interpolated
between neighbours; positions outside are zero. A matrix product with the weights follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product

from tilewright.arith.expr import TRUE, Expr, call, cast, const
from tilewright.arith.expr import product as product_of
from tilewright.core.dtypes import I64
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulator, widen
from tilewright.ops.op import Op, fail


@node
class DeformableIm2ColAttrs(Attrs):
    """Windows of size `kernel`; channels are divided into `groups` that share their offsets."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    before: tuple[int, ...]
    dilations: tuple[int, ...]
    groups: int = 1

    @property
    def rank(self) -> int:
        """The number of spatial axes."""
        return len(self.kernel)


def _sample_type(attrs: DeformableIm2ColAttrs, ins: Sequence[TensorType | None]) -> TensorType:
    x, offset, mask = (*ins, None)[:3]
    assert x is not None
    assert offset is not None
    taps = product_of(tuple(const(k) for k in attrs.kernel)) * attrs.groups
    if x.rank != attrs.rank + 2 or offset.rank != x.rank or not x.dtype.is_float:
        raise fail("deformable_im2col", f"{x} and offsets {offset} do not fit {attrs.rank} axes")
    if any(t is not None and t.dtype != x.dtype for t in (offset, mask)):
        raise fail(
            "deformable_im2col", f"offsets {offset} and mask {mask} are of another type than {x}"
        )
    if offset.shape[1] is not taps * attrs.rank:
        raise fail("deformable_im2col", f"offsets {offset} are not {attrs.rank} a tap and group")
    if mask is not None and mask.shape != (offset.shape[0], taps, *offset.shape[2:]):
        raise fail("deformable_im2col", f"the mask {mask} is not one number a tap and group")
    kernel = tuple(const(k) for k in attrs.kernel)
    return TensorType(x.dtype, (*x.shape[:2], *kernel, *offset.shape[2:]))


def _sample(
    b: Builder,
    attrs: DeformableIm2ColAttrs,
    ins: Sequence[Tensor | None],
    outs: Sequence[TensorType],
) -> Tensor:
    x, offset, mask = (*ins, None)[:3]
    assert x is not None
    assert offset is not None
    rank, dtype = attrs.rank, accumulator(x.dtype)
    per_group = x.shape[1] // attrs.groups

    def element(n: Expr, c: Expr, *rest: Expr) -> Expr:
        taps, window = rest[:rank], rest[rank:]
        tap = reduce(
            lambda flat, axis: flat * attrs.kernel[axis] + taps[axis], range(rank), c // per_group
        )
        positions = []
        for axis in range(rank):
            base = window[axis] * attrs.strides[axis] + taps[axis] * attrs.dilations[axis]
            moved = widen(offset.at(n, tap * rank + axis, *window))
            positions.append(cast(dtype, base - attrs.before[axis]) + moved)
        value = _interpolated(x, (n, c), positions)
        if mask is not None:
            value = value * widen(mask.at(n, tap, *window))
        return cast(x.dtype, value)

    return b.compute("y", outs[0].shape, element)


def _interpolated(x: Tensor, outer: tuple[Expr, Expr], positions: Sequence[Expr]) -> Expr:
    """The mean of the neighbours of a position, weighted by nearness."""
    floors = [call("floor", p) for p in positions]
    fractions = [p - f for p, f in zip(positions, floors, strict=True)]
    lower = [cast(I64, f) for f in floors]
    terms: list[Expr] = []
    for corner in product((0, 1), repeat=len(positions)):
        index = [i + step for i, step in zip(lower, corner, strict=True)]
        inside: Expr = TRUE
        for i, size in zip(index, x.shape[2:], strict=True):
            inside = inside & (i >= 0) & (i < size)
        term: Expr = widen(x.at(*outer, *index, when=inside))
        for fraction, step in zip(fractions, corner, strict=True):
            term = term * (fraction if step else const(1, fraction.dtype) - fraction)
        terms.append(term)
    return reduce(lambda a, t: a + t, terms)


OPS = (
    Op(
        "deformable_im2col",
        _sample_type,
        "out_fusable",
        DeformableIm2ColAttrs,
        te=_sample,
        flops=lambda a, ins, outs: outs[0].elements * const(4 << a.rank),
        doc="The elements under each window at moved positions: [batch, channel, taps, windows].",
    ),
)
