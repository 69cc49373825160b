"""Gradients of normalizations and of softmax's relatives, in closed form.

Rows are summed in f32 at least, as the operators themselves do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.arith.expr import Expr, as_int, const
from tilewright.ops.gradient.formula import (
    Parts,
    Rule,
    axes_of,
    expand,
    full,
    kept,
    padded,
    part,
    reduced,
    total,
    value,
    wide,
)
from tilewright.ops.op import GraphOps, flat
from tilewright.ops.reduction.norm import (
    LayerNormAttrs,
    LpNormAttrs,
    LrnAttrs,
    MeanVarianceAttrs,
    RmsNormAttrs,
)
from tilewright.ops.traced_value import Value, where


def _inverse_root(squares: Value, epsilon: float) -> Value:
    return (squares + epsilon).apply("sqrt").apply("reciprocal")


def _scaled(dy: Value, scale: Value | None) -> Value:
    return dy if scale is None else dy * wide(scale)


def _parameters(
    ins: Sequence[Value | None], dy: Value, normal: Value
) -> tuple[Value | None, Value | None]:
    """The gradients of scale and bias, where given, before they are summed to their shapes."""
    scale, bias = (*ins[1:], None, None)[:2]
    return (dy * normal if scale is not None else None), (dy if bias is not None else None)


def _layer_norm(
    attrs: LayerNormAttrs, ins: Sequence[Value | None], y: Any, dy: Any
) -> tuple[Value | None, ...]:
    """With `n = (x - mean) * inverse` and `w = dy * scale`, all of them rows:

    dx = inverse * (w - mean(w) - n * mean(w * n))
    """
    assert ins[0] is not None
    x, scale = wide(ins[0]), (*ins, None)[1]
    axes = tuple(range(attrs.axis % len(x.shape), len(x.shape)))
    mean = reduced("mean", x, axes)
    centred = x - mean
    inverse = _inverse_root(reduced("mean", centred * centred, axes), attrs.epsilon)
    normal = centred * inverse
    dys = dy if isinstance(dy, tuple) else (dy, None, None)
    found: list[Value | None] = [None, None, None]
    if dys[0] is not None:
        d = wide(dys[0])
        w = _scaled(d, scale)
        pulled = w - reduced("mean", w, axes) - normal * reduced("mean", w * normal, axes)
        found = [inverse * pulled, *_parameters(ins, d, normal)]
    return _with_statistics(found, x, axes, dys[1:], centred, inverse)[: len(ins)]


def _with_statistics(
    found: list[Value | None],
    x: Value,
    axes: Sequence[int],
    dys: Sequence[Value | None],
    centred: Value,
    inverse: Value,
) -> tuple[Value | None, ...]:
    """What the mean and 1 / deviation, where they are results, add to the gradient of `x`."""
    dmean, dinverse = (None if d is None else kept(wide(d), axes, x.shape) for d in dys)
    extra: list[Value] = []
    if dmean is not None:
        extra.append(_shared(dmean, x, axes))
    if dinverse is not None:
        slope = inverse * inverse * inverse
        extra.append(-(_shared(dinverse * slope, x, axes) * centred))
    for dx in extra:
        found[0] = dx if found[0] is None else found[0] + dx
    return tuple(found)


def _shared(dy: Value, x: Value, axes: Sequence[int]) -> Value:
    """The gradient of a mean over axes, for each of the elements."""
    return expand(dy / total(full(x, x.shape, 1.0), axes), x.shape)


def _rms_norm(
    attrs: RmsNormAttrs, ins: Sequence[Value], y: Value, dy: Value
) -> tuple[Value | None, ...]:
    """`dx = inverse * (w - n * mean(w * n))` with `n = x * inverse` and `w = dy * scale`."""
    x, d = wide(ins[0]), wide(dy)
    axes = tuple(range(attrs.axis % len(x.shape), len(x.shape)))
    inverse = _inverse_root(reduced("mean", x * x, axes), attrs.epsilon)
    normal, w = x * inverse, _scaled(d, (*ins, None)[1])
    dx = inverse * (w - normal * reduced("mean", w * normal, axes))
    return (dx, *_parameters(ins, d, normal))[: len(ins)]


def _mean_variance(attrs: MeanVarianceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> Any:
    """The deviation of equal elements is 0, and has no slope."""
    x, d = wide(ins[0]), wide(dy)
    axes = axes_of("mean_variance_norm", attrs.axes, len(x.shape))
    centred = x - reduced("mean", x, axes)
    deviation = reduced("mean", centred * centred, axes).apply("sqrt")
    width = deviation + attrs.epsilon
    along = reduced("mean", d * centred, axes) / (width * deviation)
    along = where(deviation.apply("equal", 0), along.number(0), along)
    return ((d - reduced("mean", d, axes) - centred * along) / width,)


def _lp_norm(attrs: LpNormAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """`dx = (dy - norm's slope * sum(dy * y)) / norm`; a row of zeros stays as it is."""
    x, d, y = wide(ins[0]), wide(dy), wide(y)
    axes = axes_of("lp_norm", (attrs.axis,), len(x.shape))
    size = x.apply("abs")
    powers = size if attrs.p == 1 else size.apply("pow", attrs.p)
    norm = total(powers, axes)
    norm = norm if attrs.p == 1 else norm.apply("pow", 1 / attrs.p)
    slope = x.apply("sign")
    if attrs.p != 1:
        slope = slope * (size / norm).apply("pow", attrs.p - 1)
    dx = (d - slope * total(d * y, axes)) / norm
    return (where(norm.apply("equal", 0), dx.number(0), dx),)


def _lrn(g: GraphOps, attrs: LrnAttrs, ins: Sequence[str]) -> str:
    """The window over channels as so many slices of the padded squares."""
    x = value(g, ins[0])
    real = wide(x)
    channels, rank = x.shape[1], len(x.shape)
    size = attrs.size
    known = as_int(channels)
    if known is not None:
        size = min(size, max(1, 2 * known - 1))
    before = (size - 1) // 2
    none: tuple[Expr, ...] = (const(0),) * rank

    def around(n: int) -> tuple[Expr, ...]:
        return (*none[:1], const(n), *none[2:])

    squares = padded(real * real, around(before), around(size - 1 - before))
    window = part(squares, 1, 0, channels)
    for k in range(1, size):
        window = window + part(squares, 1, k, channels + k)
    width = (window * (attrs.alpha / attrs.size) + attrs.bias).apply("pow", attrs.beta)
    return (real / width).cast(x.dtype).name


RULES: dict[str, Rule] = {
    "layer_norm": _layer_norm,
    "rms_norm": _rms_norm,
    "mean_variance_norm": _mean_variance,
    "lp_norm": _lp_norm,
    "hardmax": flat,
}
PARTS: dict[str, Parts] = {"lrn": _lrn}
