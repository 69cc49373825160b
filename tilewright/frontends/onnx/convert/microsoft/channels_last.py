"""Operators of com.microsoft on images with their channels last: convolutions, pools, group norms.

They become those of ONNX on images with their channels first, between two transpositions, which
the compiler moves to where they cost least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.expr import const
from tilewright.core.dtypes import F32
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.conv import conv
from tilewright.frontends.onnx.convert.microsoft.fused import fused_conv
from tilewright.frontends.onnx.convert.pool import max_pool
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.ops.elementwise.activation import AlphaAttrs
from tilewright.ops.reduction.channel_norm import GroupNormAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs

DOMAIN = "com.microsoft"


def _channels_first(c: OnnxContext, n: OnnxNode, x: str) -> str:
    rank = c.type(x).rank
    return c.add(n, "transpose", x, attrs=TransposeAttrs((0, rank - 1, *range(1, rank - 1))))


def _channels_last(c: OnnxContext, n: OnnxNode, x: str) -> str:
    rank = c.type(x).rank
    return c.add(n, "transpose", x, attrs=TransposeAttrs((0, *range(2, rank), 1)))


def channels_last(convert: Converter, inputs: Sequence[int] = (0,), when: str = "") -> Converter:
    """A converter for some `inputs` that have their channels last, as the output then has.

    `when` is the attribute that says so; without one it is always so.
    """

    def converted(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        if when and not n.int_attr(when, 0):
            return convert(c, n)
        moved = [
            _channels_first(c, n, x) if i in inputs and x else x for i, x in enumerate(n.inputs)
        ]
        (y,) = convert(c, replace(n, inputs=tuple(moved)))
        return (_channels_last(c, n, y),)

    converted.__doc__ = convert.__doc__
    return converted


def group_norm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Normalization of groups of channels, and an activation."""
    return (_normalized(c, n, traced(c, n, n.required(0))).name,)


def skip_group_norm(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A residual and a bias added, then as above; the second output is the sum."""
    x = traced(c, n, n.required(0))
    skip = traced(c, n, n.required(3))
    if len(skip.shape) == 2:  # one number a channel
        last = _is_last(n)
        one = const(1)
        batch, channels = skip.shape
        skip = skip.reshape((batch, one, one, channels) if last else (batch, channels, one, one))
    total = x + skip
    if n.has_input(4):
        bias = traced(c, n, n.input(4))
        total = total + (bias if _is_last(n) else bias.reshape((*bias.shape, const(1), const(1))))
    return _normalized(c, n, total).name, total.name


def _is_last(n: OnnxNode) -> bool:
    return bool(n.int_attr("channels_last", 1))


def _normalized(c: OnnxContext, n: OnnxNode, x: NodeValue) -> NodeValue:
    """Computed in f32, whatever the type of the images."""
    if n.int_attr("activation") not in (0, 1):
        raise n.invalid(f"activation is {n.int_attr('activation')}", "use 0, or 1 for SiLU")
    name = _channels_first(c, n, x.name) if _is_last(n) else x.name
    parameters = [c.cast(n, n.required(i), F32) for i in (1, 2)]
    attrs = GroupNormAttrs(n.int_attr("groups"), n.float_attr("epsilon", 1e-5))
    y = traced(c, n, c.add(n, "group_norm", c.cast(n, name, F32), *parameters, attrs=attrs))
    if n.int_attr("activation"):
        y = y.apply("swish", attrs=AlphaAttrs(1.0))
    return y.called(_channels_last(c, n, y.name) if _is_last(n) else y.name).cast(x.dtype)


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::NhwcMaxPool": channels_last(max_pool),
    f"{DOMAIN}::NhwcConv": channels_last(conv, inputs=(0, 1)),
    f"{DOMAIN}::NhwcFusedConv": channels_last(fused_conv, inputs=(0, 3)),
    f"{DOMAIN}::GroupNorm": group_norm,
    f"{DOMAIN}::SkipGroupNorm": skip_group_norm,
}
