"""Convolution in any number of spatial dimensions, and the type of its transpose.

Weights are in the order output channel, input channel of the group, kernel axes, whatever the
layout of the data; the transposed convolution has the two channel axes swapped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import partial

from tilewright.arith.expr import Expr, const, product
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import F16, I32
from tilewright.core.node import node
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import (
    accumulate,
    integer_product,
    narrow_product,
    widening_product,
)
from tilewright.ops.conv.sliding_window import (
    WindowAttrs,
    arrange,
    channels,
    check_window,
    padded,
    parts,
    spatial,
    tap,
    window_count,
)
from tilewright.ops.op import Op, fail, product_dtype
from tilewright.ops.shape.assumptions import divides, same_size

Product = Callable[[Expr, Expr], Expr]


@node
class ConvAttrs(WindowAttrs):
    """Windows, and the number of groups that input and output channels are divided into.

    `skips_padding` says that the weights are finite numbers, so that what they are multiplied with
    where a window meets padding adds nothing and may be left out.
    """

    groups: int = 1
    skips_padding: bool = field(default=False, kw_only=True)


@node
class ConvTransposeAttrs(ConvAttrs):
    """`output_padding` enlarges the output at the end of each axis."""

    output_padding: tuple[int, ...] = ()


def _conv_type(attrs: ConvAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, w = ins
    check_window("conv", attrs, x, w.rank - 2)
    ic, oc = channels(attrs.layout, x.shape), w.shape[0]
    if not all(divides("conv", attrs.groups, size) for size in (ic, oc)):
        raise fail("conv", f"{attrs.groups} groups do not divide {ic} and {oc} channels")
    if same_size("conv", ic, w.shape[1] * attrs.groups) is None:
        raise fail("conv", f"weights {w} in {attrs.groups} groups do not fit {ic} input channels")
    sizes = [
        window_count("conv", n, w.shape[2 + axis], attrs, axis)
        for axis, n in enumerate(spatial(attrs.layout, x.shape))
    ]
    dtype = product_dtype("conv", ins)
    return TensorType(dtype, arrange(attrs.layout, x.shape[0], oc, sizes))


def _half_type(attrs: ConvAttrs, ins: Sequence[TensorType]) -> TensorType:
    if any(t.dtype != F16 for t in ins):
        raise fail("conv_f16acc", f"operands {ins[0]} and {ins[1]} must be of f16")
    return _conv_type(attrs, ins)


def _integer_type(attrs: ConvAttrs, ins: Sequence[TensorType]) -> TensorType:
    if not all(t.dtype.is_integer and t.dtype.bits == 8 for t in ins):
        raise fail("conv_i32acc", f"operands {ins[0]} and {ins[1]} must be of 8-bit integers")
    x, w = (replace(t, dtype=I32) for t in ins)
    return _conv_type(attrs, (x, w))


def _conv(
    multiply: Product,
    b: Builder,
    attrs: ConvAttrs,
    ins: Sequence[Tensor],
    outs: Sequence[TensorType],
) -> Tensor:
    """Sums over kernel positions and the group's input channels."""
    x, w, out = *ins, outs[0]
    source = padded(b, attrs, x, [const(p) for p in attrs.after], const(0, x.dtype))
    group_in = channels(attrs.layout, x.shape) // attrs.groups
    group_out = channels(attrs.layout, out.shape) // attrs.groups
    one_channel, kernel = group_in is const(1), w.shape[2:]

    def element(*i: Expr) -> Expr:
        n, o, window = parts(attrs.layout, i)
        first = o // group_out * group_in if attrs.groups > 1 else const(0)

        def term(*r: Expr) -> Expr:
            taps, c = (r, const(0)) if one_channel else (r[:-1], r[-1])
            place = arrange(attrs.layout, n, first + c, tap(attrs, window, taps))
            return multiply(source.at(*place), w.at(o, c, *taps))

        return b.sum(tuple(kernel) if one_channel else (*kernel, group_in), term)

    return accumulate(b, out.shape, out.dtype, element)


def _conv_flops(attrs: ConvAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    return outs[0].elements * product(ins[1].shape[1:]) * const(2)


def conv_transpose_type(attrs: ConvTransposeAttrs, ins: Sequence[TensorType]) -> TensorType:
    """The type of a transposed convolution's result."""
    x, w = ins
    check_window("conv_transpose", attrs, x, w.rank - 2)
    ic = channels(attrs.layout, x.shape)
    if same_size("conv_transpose", ic, w.shape[0]) is None or not divides(
        "conv_transpose", attrs.groups, ic
    ):
        raise fail(
            "conv_transpose", f"weights {w} in {attrs.groups} groups do not fit {ic} input channels"
        )
    if len(attrs.output_padding) != attrs.rank:
        raise fail("conv_transpose", f"output_padding {attrs.output_padding} has the wrong length")
    kernel, sizes = w.shape[2:], []
    if const(0) in kernel:
        raise fail("conv_transpose", f"a kernel without elements: {w}")
    for axis, size in enumerate(spatial(attrs.layout, x.shape)):
        margin = attrs.output_padding[axis] - attrs.before[axis] - attrs.after[axis] + 1
        reach = const(margin - attrs.strides[axis]) + (kernel[axis] - 1) * attrs.dilations[axis]
        sizes.append(simplify(size * attrs.strides[axis] + reach))
    dtype = product_dtype("conv_transpose", ins)
    oc = w.shape[1] * attrs.groups
    return TensorType(dtype, arrange(attrs.layout, x.shape[0], oc, sizes))


OPS = (
    Op(
        "conv",
        _conv_type,
        "out_fusable",
        ConvAttrs,
        te=partial(_conv, widening_product),
        flops=_conv_flops,
        doc="Convolution without bias; weights are [out, in / groups, kernel...].",
    ),
    Op(
        "conv_f16acc",
        _half_type,
        "out_fusable",
        ConvAttrs,
        te=partial(_conv, narrow_product),
        flops=_conv_flops,
        doc="Convolution of f16, a few terms at a time summed in f16, their sums in f32.",
    ),
    Op(
        "conv_i32acc",
        _integer_type,
        "out_fusable",
        ConvAttrs,
        te=partial(_conv, integer_product),
        flops=_conv_flops,
        doc="Convolution of 8-bit integers, signed or not, summed in i32.",
    ),
)
