"""Convolution in groups, with the groups as an axis of their own, before the channels.

`group_conv` takes data `[batch, space..., group, channel]`, weights `[group, out, in, kernel...]`.
The group axis counts as the last spatial one: its windows are single groups, neither padded nor
strided. With channels first, data are `[batch, group and channel, space...]` and only the result
has the axis, `[batch, group, out, space...]`.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import Expr, const, product
from tilewright.arith.simplify import simplify
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.accumulation import accumulate, widen
from tilewright.ops.conv.sliding_window import WindowAttrs, check_window, padded, tap, window_count
from tilewright.ops.op import Op, fail, same_dtype


def _type(attrs: WindowAttrs, ins: Sequence[TensorType]) -> TensorType:
    return _type_first(attrs, ins) if attrs.layout == "channels_first" else _type_last(attrs, ins)


def _type_first(attrs: WindowAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, w = ins
    check_window("group_conv", attrs, x, w.rank - 3)
    if x.shape[1] is not simplify(w.shape[0] * w.shape[2]):
        raise fail("group_conv", f"weights {w} do not fit the channels of {x}")
    sizes = _window_counts(attrs, x.shape[2:], w)
    return TensorType(same_dtype("group_conv", ins), (x.shape[0], *w.shape[:2], *sizes))


def _type_last(attrs: WindowAttrs, ins: Sequence[TensorType]) -> TensorType:
    x, w = ins
    check_window("group_conv", attrs, x, w.rank - 2)
    own = (attrs.strides[-1], attrs.dilations[-1], attrs.before[-1], attrs.after[-1])
    if own != (1, 1, 0, 0) or attrs.layout != "channels_last":
        raise fail("group_conv", "groups are neither strided nor padded, and come before channels")
    if x.shape[-2:] != (w.shape[0], w.shape[2]):
        raise fail("group_conv", f"weights {w} do not fit the groups of {x}")
    sizes = _window_counts(attrs, x.shape[1:-2], w)
    shape = (x.shape[0], *sizes, w.shape[0], w.shape[1])
    return TensorType(same_dtype("group_conv", ins), shape)


def _window_counts(attrs: WindowAttrs, space: Shape, w: TensorType) -> list[Expr]:
    return [
        window_count("group_conv", size, w.shape[3 + axis], attrs, axis)
        for axis, size in enumerate(space)
    ]


def _formula(
    b: Builder, attrs: WindowAttrs, ins: Sequence[Tensor], outs: Sequence[TensorType]
) -> Tensor:
    x, w = ins
    source = padded(b, attrs, x, [const(p) for p in attrs.after], const(0, x.dtype))

    def element_first(n: Expr, group: Expr, out: Expr, *window: Expr) -> Expr:
        def term(c: Expr, *taps: Expr) -> Expr:
            position = tap(attrs, window, taps)
            value = source.at(n, group * w.shape[2] + c, *position)
            return widen(value) * widen(w.at(group, out, c, *taps))

        return b.sum(w.shape[2:], term)

    def element_last(n: Expr, *i: Expr) -> Expr:
        window, group, out = i[:-1], i[-2], i[-1]

        def term(*r: Expr) -> Expr:
            taps, c = r[:-1], r[-1]
            position = tap(attrs, window, (*taps, const(0)))
            return widen(source.at(n, *position, c)) * widen(w.at(group, out, c, *taps))

        return b.sum((*w.shape[3:], w.shape[2]), term)

    element = element_first if attrs.layout == "channels_first" else element_last
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
        doc="Convolution in groups; data are [batch, space..., group, channel] or channels first.",
    ),
)
