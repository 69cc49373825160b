"""Gradients of reductions over axes, and of what runs along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.ops.gradient.formula import (
    Rule,
    axes_of,
    full,
    kept,
    scattered,
    shifted,
    size_of,
    total,
    transpose,
)
from tilewright.ops.op import flat
from tilewright.ops.reduction.cumsum_rows import CumsumRowsAttrs
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.reduction.cumulative_extreme import CumulativeExtremeAttrs
from tilewright.ops.reduction.linear_recurrence import RecurrenceAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.traced_value import Value, where


def _rows(attrs: ReduceAttrs, ins: Sequence[Value], *values: Value) -> list[Value]:
    """Values that a reduction gave, shaped to broadcast against its operand."""
    shape = ins[0].shape
    axes = axes_of("reduce", attrs.axes, len(shape))
    return [kept(v, axes, shape) for v in values]


def _greatest(attrs: ReduceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """Elements that are the greatest (or least) share the gradient."""
    x = ins[0]
    y, dy = _rows(attrs, ins, y, dy)
    best = x.apply("equal", y).cast(x.dtype)
    return (best * (dy / total(best, axes_of("reduce", attrs.axes, len(x.shape)))),)


def _product(attrs: ReduceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """The product of all elements before and all behind: right where some of them are 0, too."""
    x, rank = ins[0], len(ins[0].shape)
    axes = axes_of("reduce", attrs.axes, rank)
    if not axes:
        return (dy,)
    outer = [d for d in range(rank) if d not in axes]
    perm = (*outer, *axes)
    turned = transpose(x, perm)
    shape = turned.shape
    lines = turned.reshape((*shape[: len(outer)], size_of(shape[len(outer) :])))
    before, behind = (
        lines.apply("cumprod", attrs=ScanAttrs(len(outer), exclusive=True, reverse=reverse))
        for reverse in (False, True)
    )
    others = (before * behind).reshape(shape)
    inverse = tuple(perm.index(d) for d in range(rank))
    (wide,) = _rows(attrs, ins, dy)
    return (wide * transpose(others, inverse),)


def _l1(attrs: ReduceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    return (ins[0].apply("sign") * _rows(attrs, ins, dy)[0],)


def _l2(attrs: ReduceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """A norm of 0 has no slope in any direction."""
    y, dy = _rows(attrs, ins, y, dy)
    return (ins[0] * where(y.apply("equal", 0), dy.number(0), dy / y),)


def _log_sum(attrs: ReduceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    x = ins[0]
    share = dy / x.apply("reduce_sum", attrs=attrs)
    return (_spread(x, _rows(attrs, ins, share)[0]),)


def _spread(x: Value, dx: Value) -> Value:
    return dx + full(x, x.shape, 0.0) if dx.shape != x.shape else dx


def _sum_square(attrs: ReduceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    return (ins[0] * (_rows(attrs, ins, dy)[0] * 2),)


def _log_sum_exp(attrs: ReduceAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """Of a row of nothing but -inf, no element counts."""
    y, dy = _rows(attrs, ins, y, dy)
    base = where(y.apply("equal", float("-inf")), y.number(0), y)
    return (dy * (ins[0] - base).apply("exp"),)


def _cumsum(attrs: ScanAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    return (dy.apply("cumsum", attrs=replace(attrs, reverse=not attrs.reverse)),)


def _cumsum_rows(attrs: CumsumRowsAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    turned = ScanAttrs(1, attrs.exclusive, not attrs.reverse)
    return (dy.apply("cumsum", attrs=turned),)


def _cumprod(attrs: ScanAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """`dx[i] = (product before i) * s[i]`, where `s[i] = dy[i] + x[i + 1] * s[i + 1]`.

    There is no quotient: elements may be 0. Exclusive products lack the element itself, and have
    `dy[i + 1]` there.
    """
    x = ins[0]
    before = x.apply("cumprod", attrs=replace(attrs, exclusive=True))
    new = shifted(dy, attrs.axis, attrs.reverse) if attrs.exclusive else dy
    return (before * _recurrence(new, shifted(x, attrs.axis, attrs.reverse), attrs),)


def _cumlogsumexp(attrs: ScanAttrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[Value]:
    """`dx[i] = exp(x[i] - y[i]) * s[i]`, where `s[i] = dy[i] + exp(y[i] - y[i + 1]) * s[i + 1]`.

    No exponent is above 0. Exclusive sums lack the element itself, and have `dy[i + 1]` there.
    """
    x = ins[0]
    if attrs.exclusive:
        y = x.apply("cumlogsumexp", attrs=replace(attrs, exclusive=False))
        dy = shifted(dy, attrs.axis, attrs.reverse)
    nothing = y.apply("equal", float("-inf"))
    base = where(nothing, y.number(0), y)
    growth = (base - shifted(base, attrs.axis, attrs.reverse)).apply("min", y.number(0))
    kept_part = where(nothing, y.number(0), growth.apply("exp"))
    return ((x - base).apply("exp") * _recurrence(dy, kept_part, attrs),)


def _cumulative_extreme(
    attrs: CumulativeExtremeAttrs,
    ins: Sequence[Value],
    y: tuple[Value, Value],
    dy: tuple[Value | None, ...],
) -> tuple[Value | None]:
    if dy[0] is None:
        return (None,)
    return (scattered(ins[0], attrs.axis, y[1], dy[0], "clip"),)


def _recurrence(b: Value, a: Value, attrs: ScanAttrs | RecurrenceAttrs) -> Value:
    """A recurrence in the other direction."""
    turned = RecurrenceAttrs(attrs.axis, not attrs.reverse)
    return b.apply("linear_recurrence", a, attrs=turned)


def _linear_recurrence(
    attrs: RecurrenceAttrs, ins: Sequence[Value], y: Value, dy: Value
) -> tuple[Value, Value]:
    """`s[i] = dy[i] + a[i + 1] * s[i + 1]`; `db = s`, `da[i] = s[i] * y[i - 1]`."""
    s = _recurrence(dy, shifted(ins[1], attrs.axis, attrs.reverse), attrs)
    return s, s * shifted(y, attrs.axis, not attrs.reverse)


RULES: dict[str, Rule] = {
    "reduce_max": _greatest,
    "reduce_min": _greatest,
    "reduce_prod": _product,
    "reduce_l1": _l1,
    "reduce_l2": _l2,
    "reduce_log_sum": _log_sum,
    "reduce_sum_square": _sum_square,
    "reduce_log_sum_exp": _log_sum_exp,
    "argmax": flat,
    "argmin": flat,
    "cumsum": _cumsum,
    "cumsum_rows": _cumsum_rows,
    "cumprod": _cumprod,
    "cumlogsumexp": _cumlogsumexp,
    "cumulative_extreme": _cumulative_extreme,
    "linear_recurrence": _linear_recurrence,
}
