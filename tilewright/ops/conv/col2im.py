"""col2im: sliding blocks summed into an image, the inverse of im2col.

y[n, c, p] = sum over taps k of x[n, (c, k), b]  where  p = b * stride + k * dilation - pad

Each element of the image gathers its taps. With stride `s`, those are every `s`-th of the kernel.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd
from operator import add, and_
from typing import NamedTuple

from tilewright.arith.expr import Expr, as_int, cast, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulate, accumulator
from tilewright.ops.conv.sliding_window import WindowAttrs, check_steps, window_count
from tilewright.ops.elementwise.define import check_dtype, numbers
from tilewright.ops.op import Op, fail
from tilewright.ops.shape.assumptions import same_size
from tilewright.ops.tensor.manipulation import flatten

# Taps of a place that are written out: without a reduction, each is a load of whole vectors.
MAX_WRITTEN_OUT = 16


@node
class Col2ImAttrs(Attrs):
    """The size of the image, the size of a block, and where blocks lie in the padded image."""

    image: tuple[Expr, ...]
    kernel: tuple[Expr, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]


def _window(attrs: Col2ImAttrs) -> WindowAttrs:
    return WindowAttrs(attrs.strides, attrs.pads, attrs.dilations)


def _counts(attrs: Col2ImAttrs) -> tuple[Expr, ...]:
    window = _window(attrs)
    return tuple(
        window_count("col2im", size, attrs.kernel[axis], window, axis)
        for axis, size in enumerate(attrs.image)
    )


def _type(attrs: Col2ImAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, rank = ins[0], len(attrs.kernel)
    check_dtype("col2im", numbers, x.dtype)
    if not len(attrs.image) == len(attrs.strides) == rank > 0:
        raise fail("col2im", f"{attrs} does not give every axis its numbers")
    check_steps("col2im", _window(attrs))
    if x.rank != 3 or any((as_int(k - 1) or 0) < 0 for k in attrs.kernel):
        raise fail("col2im", f"{x} with blocks {attrs.kernel}", "give [N, C * block, L]")
    taps, blocks = product(attrs.kernel), simplify(product(_counts(attrs)))
    channels = simplify(x.shape[1] // taps)
    if same_size("col2im", x.shape[1], channels * taps) is None:
        raise fail("col2im", f"{x.shape[1]} channels are not blocks of {taps}")
    if same_size("col2im", x.shape[2], blocks) is None:
        raise fail("col2im", f"{x} has not the {blocks} blocks of the image")
    return TensorType(x.dtype, (x.shape[0], channels, *map(simplify, attrs.image)))


class _Meeting(NamedTuple):
    """A tap of the kernel that meets a place, the block it is of, and whether there are both."""

    tap: Expr
    block: Expr
    exists: Expr


@dataclass(frozen=True)
class _TapAxis:
    """The taps that meet a place along one axis: every `period`-th one of the kernel.

    Blocks start at multiples of the stride, so that a tap meets only the places of its phase: those
    that are as far from a multiple as it is. The other taps are not asked.
    """

    kernel: Expr
    stride: int
    dilation: int
    blocks: Expr

    @property
    def period(self) -> int:
        """From one tap to the next of the same phase."""
        return self.stride // gcd(self.stride, self.dilation)

    @property
    def most(self) -> Expr:
        """How many taps meet a place at most."""
        return simplify((self.kernel + (self.period - 1)) // self.period)

    def meeting(self, place: Expr, number: Expr) -> _Meeting:
        """The tap of this number that meets a place."""
        common, phase = gcd(self.stride, self.dilation), place % self.stride
        dilation = self.dilation // common
        first = phase // common * pow(dilation, -1, self.period) % self.period
        tap = first + number * self.period
        start = place // self.stride - (first * self.dilation - phase) // self.stride
        block = start - number * dilation
        is_tap = (tap < self.kernel) & (phase % common).eq(0)
        return _Meeting(tap, block, is_tap & (block >= 0) & (block < self.blocks))


def _col2im(
    b: Builder, attrs: Col2ImAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, counts, real = ins[0], _counts(attrs), accumulator(ins[0].dtype)
    steps = zip(attrs.kernel, attrs.strides, attrs.dilations, counts, strict=True)
    axes = [_TapAxis(*numbers) for numbers in steps]
    most = tuple(axis.most for axis in axes)

    def element(n: Expr, c: Expr, *place: Expr) -> Expr:
        padded = [p + pad for p, pad in zip(place, attrs.pads, strict=False)]

        def term(*numbers: Expr) -> Expr:
            met = list(map(_TapAxis.meeting, axes, padded, numbers))
            row = flatten((x.shape[1], *attrs.kernel), (c, *(m.tap for m in met)))
            at, exists = (flatten(counts, [m.block for m in met]), [m.exists for m in met])
            return cast(real, x.at(n, row, at, when=reduce(and_, exists)))

        if (as_int(product(most)) or MAX_WRITTEN_OUT + 1) > MAX_WRITTEN_OUT:
            return b.sum(most, term)
        numbers = itertools.product(*(map(const, range(as_int(k) or 0)) for k in most))
        return reduce(add, itertools.starmap(term, numbers))

    return accumulate(b, outs[0].shape, x.dtype, element)


OPS = (
    Op(
        "col2im",
        _type,
        "out_fusable",
        Col2ImAttrs,
        te=_col2im,
        flops=lambda a, ins, outs: outs[0].elements * product(a.kernel),
        doc="Blocks [N, C * block, number of blocks] summed where they lie in an image.",
    ),
)
