"""Normalization and the softmax family."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tilewright.arith.expr import Expr, const, product
from tilewright.arith.simplify import simplify
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext
from tilewright.ir.types import TensorType
from tilewright.ops.accumulation import accumulator
from tilewright.ops.attrs import make_attrs
from tilewright.ops.reduction.channel_norm import EpsilonAttrs, GroupNormAttrs, per_channel
from tilewright.ops.reduction.norm import LayerNormAttrs, RmsNormAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.creation import FullAttrs


def _filled(
    c: TorchContext, n: AtenCall, value: float, like: TensorType, shape: Sequence[Expr]
) -> str:
    return c.add(n, "full", attrs=FullAttrs(tuple(shape), value, like.dtype))


def _parameters(c: TorchContext, n: AtenCall, x: str, shape: Sequence[Expr]) -> tuple[str, str]:
    """Weight and bias, ones and zeros where there are none."""
    t = c.type(x)
    given = [(n["weight"], 1.0), (n["bias"], 0.0)]
    weight, bias = (
        _filled(c, n, value, t, shape) if name is None else c.operand(n, name, t.dtype)
        for name, value in given
    )
    return weight, bias


def batch_norm(c: TorchContext, n: AtenCall) -> tuple[str, None, None]:
    """With given statistics: a multiplication and an addition, computed from them beforehand."""
    x = n["input"]
    t = c.type(x)
    weight, bias = _parameters(c, n, x, t.shape[1:2])
    mean, variance = (c.operand(n, n[k], t.dtype) for k in ("running_mean", "running_var"))
    known = [c.g.constant_data(v) for v in (weight, bias, mean, variance)]
    data = [k for k in known if k is not None]
    if len(data) < len(known):
        attrs = EpsilonAttrs(n["eps"])
        return c.add(n, "batch_norm", x, weight, bias, mean, variance, attrs=attrs), None, None
    scale, offset, centre, spread = (d.astype(np.float64) for d in data)
    factor = scale / np.sqrt(spread + n["eps"])
    shape = (-1, *(1,) * (t.rank - 2))
    scaled = c.add(n, "mul", x, c.constant(factor.reshape(shape), t.dtype, "scale"))
    moved = c.constant((offset - centre * factor).reshape(shape), t.dtype, "offset")
    return c.add(n, "add", scaled, moved), None, None


def own_statistics(c: TorchContext, n: AtenCall) -> Result:
    """By the mean and variance of the batch itself, which with 1 / deviation are results too."""
    if n.get("running_mean") is not None:
        raise n.unsupported("running statistics that are written to", "functionalize it first")
    y, mean, variance = _own_statistics(c, n)
    return y, *_statistics(c, n, mean, _inverse_root(c, n, variance))


def running_statistics(c: TorchContext, n: AtenCall) -> Result:
    """The same, and what running statistics are after a step towards those of the batch.

    The running variance is that of all data as a sample estimates it: of `n - 1` for `n` elements.
    """
    old = n["running_mean"], n["running_var"]
    if not n["training"]:
        return *batch_norm(c, n)[:1], None, None, *old
    y, mean, variance = _own_statistics(c, n)
    t = c.type(n["input"])
    count = c.operand(n, simplify(c.elements(n["input"]) // t.shape[1]), c.type(variance).dtype)
    others = c.add(n, "sub", count, c.constant(1, c.type(count).dtype))
    estimate = c.add(n, "mul", variance, c.add(n, "div", count, others))
    new = (_stepped(c, n, *pair) for pair in zip(old, (mean, estimate), strict=True))
    return y, *_statistics(c, n, mean, _inverse_root(c, n, variance)), *new


def _stepped(c: TorchContext, n: AtenCall, old: str, found: str) -> str:
    dtype = c.type(old).dtype
    kept, taken = (c.constant(v, dtype) for v in (1 - n["momentum"], n["momentum"]))
    step = c.add(n, "mul", c.cast(n, found, dtype), taken)
    return c.add(n, "add", c.add(n, "mul", old, kept), step)


def _own_statistics(c: TorchContext, n: AtenCall) -> tuple[str, str, str]:
    """Normalized data, and the mean and variance of each channel."""
    x = n["input"]
    t = c.type(x)
    weight, bias = _parameters(c, n, x, t.shape[1:2])
    axes = ReduceAttrs(tuple(a for a in range(t.rank) if a != 1), keepdims=False)
    rows = c.cast(n, x, accumulator(t.dtype))
    mean = c.add(n, "reduce_mean", rows, attrs=axes)
    centred = c.add(n, "sub", rows, per_channel(c.g, mean, t.rank))
    variance = c.add(n, "reduce_mean", c.add(n, "mul", centred, centred), attrs=axes)
    attrs = EpsilonAttrs(n["eps"])
    given = (c.cast(n, v, t.dtype) for v in (mean, variance))
    y = c.add(n, "batch_norm", x, weight, bias, *given, attrs=attrs)
    return y, mean, variance


def _inverse_root(c: TorchContext, n: AtenCall, variance: str) -> str:
    epsilon = c.constant(n["eps"], c.type(variance).dtype)
    return c.add(n, "reciprocal", c.add(n, "sqrt", c.add(n, "add", variance, epsilon)))


def _statistics(c: TorchContext, n: AtenCall, *found: str) -> tuple[str | None, ...]:
    """Mean and 1 / deviation as torch's results, those that are used."""
    given: list[str | None] = []
    for place, value in enumerate(found, 1):
        t = n.results[place]
        wanted = place in n.used and t is not None
        given.append(c.reshape(n, c.cast(n, value, t.dtype), t.shape) if wanted and t else None)
    return tuple(given)


def layer_norm(c: TorchContext, n: AtenCall) -> Result:
    """Over the trailing axes."""
    x = n["input"]
    axes = len(n["normalized_shape"])
    weight, bias = _parameters(c, n, x, c.type(x).shape[-axes:])
    if n.used.isdisjoint({1, 2}):
        attrs = LayerNormAttrs(-axes, n["eps"])
        return c.add(n, "layer_norm", x, weight, bias, attrs=attrs), None, None
    attrs = LayerNormAttrs(-axes, n["eps"], stats=True)
    y, *found = c.g.add_many("layer_norm", x, weight, bias, attrs=attrs, names=(n.name,), loc=n.loc)
    return y, *_statistics(c, n, *found)


def group_norm(c: TorchContext, n: AtenCall) -> Result:
    """Over groups of channels."""
    x = n["input"]
    t = c.type(x)
    weight, bias = _parameters(c, n, x, t.shape[1:2])
    attrs = GroupNormAttrs(n["group"], n["eps"])
    y = c.add(n, "group_norm", x, weight, bias, attrs=attrs)
    if n.used.isdisjoint({1, 2}):
        return y, None, None
    groups = (t.shape[0], const(n["group"]), simplify(product(t.shape[1:]) // n["group"]))
    rows = c.cast(n, c.reshape(n, x, groups), accumulator(t.dtype))
    axes = ReduceAttrs((2,), keepdims=True)
    mean = c.add(n, "reduce_mean", rows, attrs=axes)
    centred = c.add(n, "sub", rows, mean)
    variance = c.add(n, "reduce_mean", c.add(n, "mul", centred, centred), attrs=axes)
    return y, *_statistics(c, n, mean, _inverse_root(c, n, variance))


def rms_norm(c: TorchContext, n: AtenCall) -> Result:
    """By the root of the mean square over the trailing axes."""
    x = n["input"]
    t, axes = c.type(x), len(n["normalized_shape"])
    weight = n["weight"]
    if weight is None:
        weight = _filled(c, n, 1.0, t, t.shape[-axes:])
    epsilon = n["eps"] if n["eps"] is not None else float(np.finfo(t.dtype.numpy).eps)
    y = c.add(n, "rms_norm", x, weight, attrs=RmsNormAttrs(-axes, epsilon))
    return y if len(n.results) == 1 else (y, None)


def along_axis(op: str, **attrs: str) -> Converter:
    """Softmax and its relatives."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x = c.operand(n, n["self"], n.dtype)
        if n.type.rank:
            return c.add(n, op, x, attrs=make_attrs(op, {"axis": n["dim"], **attrs}))
        row = c.add(n, op, c.reshape(n, x, (1,)), attrs=make_attrs(op, {"axis": 0, **attrs}))
        return c.reshape(n, row, ())

    return convert


CONVERTERS: dict[str, Converter] = {
    "aten._native_batch_norm_legit_no_training": batch_norm,
    "aten._native_batch_norm_legit": own_statistics,
    "aten._native_batch_norm_legit_functional": running_statistics,
    "aten.native_layer_norm": layer_norm,
    "aten.native_group_norm": group_norm,
    "aten._fused_rms_norm": rms_norm,
    "aten._softmax": along_axis("softmax"),
    "aten._log_softmax": along_axis("log_softmax"),
    "aten._safe_softmax": along_axis("softmax", fully_masked="zero"),
}
