"""Gradients that torch has operators of its own for, by the gradient rules of our rows.

    aten.convolution_backward(dy, x, w, ...)  ->  the forward call again, of copies of x and w, and
                                                  what `autodiff` pulls back through it from dy

What of the forward call no gradient reads is dead, and is not computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tilewright.arith.expr import Expr, as_expr
from tilewright.autodiff.backward import full_like, pullback
from tilewright.frontends.torch.context import (
    AtenCall,
    Converter,
    Result,
    TorchContext,
    ValueName,
)
from tilewright.frontends.torch.convert.attention import attention
from tilewright.frontends.torch.convert.conv import convolution
from tilewright.frontends.torch.convert.pool import adaptive_average, average_pool
from tilewright.frontends.torch.convert.resize import CONVERTERS as RESIZES
from tilewright.frontends.torch.convert.resize import grid_sample
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.traced_value import Value


def pulled(
    c: TorchContext, n: AtenCall, forward: Converter, args: Mapping[str, Any], wrt: Sequence[str]
) -> list[str]:
    """The gradients of the arguments `wrt` of a forward call whose result has that of this one."""
    dy = n["grad_output"]
    # Copies, since one tensor may be several arguments, each with a gradient of its own.
    copies = {name: c.add(n, "identity", args[name]) for name in wrt}
    start = len(c.g.nodes)
    named = {name: ValueName(copy) for name, copy in copies.items()}
    call = replace(n, args={**args, **named}, results=(c.type(dy),), used=frozenset({0}))
    y = forward(c, call)
    assert isinstance(y, str), n.op
    found = pullback(c.g, c.g.nodes[start:], set(copies.values()), {y: Value(c.g, dy)})
    return [
        found[copy].name if copy in found else full_like(c.g, copy, 0.0) for copy in copies.values()
    ]


def convolution_backward(c: TorchContext, n: AtenCall) -> Result:
    """By the data, the weights and the bias: those of which the mask asks for the gradient."""
    dy, mask = n["grad_output"], n["output_mask"]
    wrt = [name for name, wants in zip(("input", "weight"), mask, strict=False) if wants]
    args = {**n.args, "bias": None}
    found: dict[str, str | None] = dict(zip(wrt, pulled(c, n, convolution, args, wrt), strict=True))
    if mask[2]:
        axes = (0, *range(2, c.type(dy).rank))
        found["bias"] = c.add(n, "reduce_sum", dy, attrs=ReduceAttrs(axes, keepdims=False))
    return found.get("input"), found.get("weight"), found.get("bias")


def of_data(forward: Converter, **fixed: Any) -> Converter:
    """An operator with one operand; `fixed` are arguments that only its forward call has."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        return pulled(c, n, forward, {**n.args, **fixed}, ["self"])[0]

    return convert


def adaptive_backward(c: TorchContext, n: AtenCall) -> Result:
    """Of means of windows that share out each axis, to as many as the gradient has."""
    rank = 3 if "3d" in n.op else 2
    sizes: tuple[Expr, ...] = c.type(n["grad_output"]).shape[-rank:]
    return of_data(adaptive_average, output_size=list(sizes))(c, n)


def resized_backward(forward: Converter) -> Converter:
    """Of images on another grid; that is linear, so that the images themselves are not given."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        t = c.type(n["grad_output"])
        shape = tuple(as_expr(d) for d in n["input_size"])
        image = ValueName(c.add(n, "full", attrs=FullAttrs(shape, 0.0, t.dtype)))
        return pulled(c, n, forward, {**n.args, "self": image}, ["self"])[0]

    return convert


def grid_sample_backward(c: TorchContext, n: AtenCall) -> Result:
    """By the image and the grid: those of which the mask asks for the gradient."""
    names = ("input", "grid")
    wrt = [name for name, wants in zip(names, n["output_mask"], strict=True) if wants]
    found = dict(zip(wrt, pulled(c, n, grid_sample, n.args, wrt), strict=True))
    return tuple(found.get(name) for name in names)


def attention_backward(c: TorchContext, n: AtenCall) -> Result:
    """By queries, keys, values and mask: those of which gradients are asked for."""
    names = ("query", "key", "value", "attn_mask")
    wrt = [name for name, wants in zip(names, n["output_mask"], strict=True) if wants]
    found = dict(zip(wrt, pulled(c, n, attention, n.args, wrt), strict=True))
    return tuple(found.get(name) for name in names)


RESIZED = (
    *("upsample_nearest1d", "upsample_nearest2d", "upsample_nearest3d", "upsample_linear1d"),
    *("upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
    *("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa"),
)
CONVERTERS: dict[str, Converter] = {
    "aten.convolution_backward": convolution_backward,
    "tilewright.attention_backward": attention_backward,
    **{f"aten.grid_sampler_{d}d_backward": grid_sample_backward for d in (2, 3)},
    **{f"aten.{name}_backward": resized_backward(RESIZES[f"aten.{name}"]) for name in RESIZED},
    **{f"aten.avg_pool{d}d_backward": of_data(average_pool(d)) for d in (2, 3)},
    **{f"aten._adaptive_avg_pool{d}d_backward": adaptive_backward for d in (2, 3)},
}
