"""Convolutions, plain and transposed; a bias is an addition."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.expr import as_expr, as_int
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext
from tilewright.ops.conv.conv import ConvAttrs, ConvTransposeAttrs
from tilewright.ops.conv.polyphase import convolve_phases
from tilewright.ops.reduction.channel_norm import per_channel


def numbers(n: AtenCall, name: str, rank: int) -> tuple[int, ...]:
    """A number for each spatial axis; one alone is for all."""
    given = n[name] if isinstance(n[name], Sequence) else [n[name]]
    found = [as_int(as_expr(v)) for v in given]
    if None in found:
        raise n.unsupported(f"{name} is {list(map(str, given))}", "it must be numbers")
    whole = tuple(v for v in found if v is not None)
    return whole * rank if len(whole) == 1 else whole


def convolution(c: TorchContext, n: AtenCall) -> Result:
    """Convolution of any rank, transposed or not, and the addition of its bias."""
    x, w = n["input"], n["weight"]
    rank = c.type(x).rank - 2
    strides, pads, dilations = (numbers(n, k, rank) for k in ("stride", "padding", "dilation"))
    if n["transposed"]:
        extra = numbers(n, "output_padding", rank)
        attrs = ConvTransposeAttrs(
            strides, pads * 2, dilations, groups=n["groups"], output_padding=extra
        )
        y = convolve_phases(c.g, attrs, x, w) or c.add(n, "conv_transpose", x, w, attrs=attrs)
    else:
        plain = ConvAttrs(strides, pads * 2, dilations, groups=n["groups"])
        y = c.add(n, "conv", x, w, attrs=plain)
    return y if n["bias"] is None else c.add(n, "add", y, _bias(c, n["bias"], rank + 2))


def _bias(c: TorchContext, bias: str, rank: int) -> str:
    data = c.g.constant_data(bias)
    if data is None:
        return per_channel(c.g, bias, rank)
    return c.g.constant(data.reshape(-1, *(1,) * (rank - 2)), bias)


CONVERTERS: dict[str, Converter] = {"aten.convolution": convolution}
