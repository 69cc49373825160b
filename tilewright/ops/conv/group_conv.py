"""Convolution in groups, with the groups as an axis of their own, before the channels.

`group_conv` takes data `[batch, space..., group, channel]`, weights `[group, out, in, kernel...]`.
The group axis counts as the last spatial one: its windows are single groups, neither padded nor
strided.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, const, product
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulate, widen
from tilewright.ops.conv.sliding_window import WindowAttrs, check_window, padded, tap, window_count
from tilewright.ops.op import Op, fail, same_dtype


def _type(attrs: WindowAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, w = ins
    check_window("group_conv", attrs, x, w.rank - 2)
    own = (attrs.strides[-1], attrs.dilations[-1], attrs.before[-1], attrs.after[-1])
    if own != (1, 1, 0, 0) or attrs.layout != "channels_last":
        raise fail("group_conv", "groups are neither strided nor padded, and come before channels")
    if x.shape[-2:] != (w.shape[0], w.shape[2]):
        raise fail("group_conv", f"weights {w} do not fit the groups of {x}")
    sizes = [
        window_count("group_conv", x.shape[1 + axis], w.shape[3 + axis], attrs, axis)
        for axis in range(attrs.rank - 1)
    ]
    shape = (x.shape[0], *sizes, w.shape[0], w.shape[1])
    return TensorType(same_dtype("group_conv", ins), shape)


def _formula(
    b: Builder, attrs: WindowAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, w = ins
    source = padded(b, attrs, x, [const(p) for p in attrs.after], const(0, x.dtype))

    def element(n: Expr, *i: Expr) -> Expr:
        window, group, out = i[:-1], i[-2], i[-1]

        def term(*r: Expr) -> Expr:
            taps, c = r[:-1], r[-1]
            position = tap(attrs, window, (*taps, const(0)))
            return widen(source.at(n, *position, c)) * widen(w.at(group, out, c, *taps))

        return b.sum((*w.shape[3:], w.shape[2]), term)

    return accumulate(b, outs[0].shape, outs[0].dtype, element)


def _flops(attrs: WindowAttrs, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Expr:
    return outs[0].elements * product(ins[1].shape[2:]) * const(2)


OPS = (
    Op(
        "group_conv",
        _type,
        "out_fusable",
        WindowAttrs,
        te=_formula,
        flops=_flops,
        doc="Convolution in groups; data are [batch, space..., group, channel].",
    ),
)
