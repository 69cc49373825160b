"""Reductions, running sums, and sorting."""

from __future__ import annotations

import math

from tilewright.arith.expr import Expr, as_expr, const
from tilewright.core.dtypes import BOOL, I64, U8
from tilewright.frontends.torch.context import (
    AtenCall,
    Converter,
    Result,
    TorchContext,
    axes_of,
    axis_of,
)
from tilewright.frontends.torch.convert.widened import widened
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.reduction.cumulative_extreme import CumulativeExtremeAttrs
from tilewright.ops.reduction.reduce import ArgAttrs, ReduceAttrs
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.tensor.topk import TopKAttrs


def reduction(op: str) -> Converter:
    """A reduction over the axes that are named, or all, in the type of the result."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        return _reduced(c, n, op, c.operand(n, n["self"], n.dtype))

    return convert


def _reduced(c: TorchContext, n: AtenCall, op: str, x: str) -> str:
    axes = axes_of(n, c.type(x).rank)
    return c.add(n, op, x, attrs=ReduceAttrs(axes, bool(n.get("keepdim", False))))


def truth(op: str) -> Converter:
    """Whether any, or all, elements are other than zero."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        found = _reduced(c, n, op, c.operand(n, n["self"], BOOL))
        return c.cast(n, found, n.dtype)

    return convert


def argument(op: str) -> Converter:
    """Where an extreme is: along an axis, or in the row of all elements."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x, axis = n["self"], n["dim"]
        if axis is None or not c.type(x).rank:
            flat = c.reshape(n, x, (c.elements(x),))
            return c.reshape(n, c.add(n, op, flat, attrs=ArgAttrs(0, False)), n.type.shape)
        return c.add(n, op, x, attrs=ArgAttrs(axis, n["keepdim"]))

    return convert


def extreme(name: str) -> Converter:
    """The greatest or least: of all, or along an axis together with where it is."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        if n.get("dim") is None:
            return _reduced(c, n, f"reduce_{name}", n["self"])
        if not c.type(n["self"]).rank:
            return n["self"], c.add(n, "full", attrs=FullAttrs((), 0, I64))
        value = _reduced(c, n, f"reduce_{name}", n["self"]) if 0 in n.used else None
        attrs = ArgAttrs(n["dim"], n["keepdim"])
        return value, c.add(n, f"arg{name}", n["self"], attrs=attrs) if 1 in n.used else None

    return convert


def variance_and_mean(c: TorchContext, n: AtenCall) -> Result:
    """Both."""
    return variance(c, n), _reduced(c, n, "reduce_mean", n["self"])


def variance(c: TorchContext, n: AtenCall) -> str:
    """Squares of what deviates from the mean, their sum divided by the count less a correction."""
    x = n["self"]
    axes = axes_of(n, c.type(x).rank)
    wide = ReduceAttrs(axes, keepdims=True)
    centred = c.add(n, "sub", x, c.add(n, "reduce_mean", x, attrs=wide))
    total = _reduced(c, n, "reduce_sum", c.add(n, "mul", centred, centred))
    count: Expr = const(1)
    for axis in axes:
        count = count * c.type(x).shape[axis]
    correction = 1 if n["correction"] is None else n["correction"]
    divisor = c.add(n, "sub", c.operand(n, count, n.dtype), c.constant(correction, n.dtype))
    return c.add(n, "div", total, c.add(n, "max", divisor, c.constant(0, n.dtype)))


def norm(c: TorchContext, n: AtenCall) -> Result:
    """The norm of vectors of any order."""
    x, order = c.operand(n, n["self"], n.dtype), float(n["ord"])
    if order in (1.0, 2.0):
        return _reduced(c, n, f"reduce_l{int(order)}", x)
    size = c.add(n, "abs", x)
    if math.isinf(order):
        return _reduced(c, n, "reduce_max" if order > 0 else "reduce_min", size)
    if order == 0:
        return _reduced(c, n, "reduce_sum", c.cast(n, c.cast(n, x, BOOL), n.dtype))
    powers = c.add(n, "pow", size, c.constant(order, n.dtype))
    total = _reduced(c, n, "reduce_sum", powers)
    return c.add(n, "pow", total, c.constant(1 / order, n.dtype))


def scan(op: str) -> Converter:
    """A running sum or product along an axis."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x = c.operand(n, n["self"], n.dtype)
        if not n.type.rank:
            return x
        return c.add(n, op, x, attrs=ScanAttrs(axis_of(n["dim"], n.type.rank)))

    return convert


def extreme_so_far(largest: bool) -> Converter:
    """The greatest or least element so far, and where it stands."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        x = n["self"]
        if not n.type.rank:
            return x, c.add(n, "full", attrs=FullAttrs((), 0, I64))
        attrs = CumulativeExtremeAttrs(axis_of(n["dim"], n.type.rank), largest)
        given = c.cast(n, x, U8) if n.dtype == BOOL else x
        found, places = c.g.add_many(
            "cumulative_extreme", given, attrs=attrs, names=(n.name,), loc=n.loc
        )
        return c.cast(n, found, n.dtype), places

    return convert


def topk(c: TorchContext, n: AtenCall) -> Result:
    """The greatest or least elements along an axis, in order, and where they are."""
    x = _ordered(c, n)
    if not n.type.rank:
        return x, c.add(n, "full", attrs=FullAttrs((), 0, I64))
    attrs = TopKAttrs(as_expr(n["k"]), n["dim"], n["largest"])
    found, places = c.g.add_many("topk", x, attrs=attrs, names=(n.name,), loc=n.loc)
    return c.cast(n, found, n.dtype), places


def sort(c: TorchContext, n: AtenCall) -> Result:
    """All elements along an axis in order, and where they were."""
    x = _ordered(c, n)
    if not n.type.rank:
        return x, c.add(n, "full", attrs=FullAttrs((), 0, I64))
    axis = axis_of(n["dim"], n.type.rank)
    attrs = TopKAttrs(c.type(x).shape[axis], axis, n["descending"])
    found, places = c.g.add_many("topk", x, attrs=attrs, names=(n.name,), loc=n.loc)
    return c.cast(n, found, n.dtype), places


def _ordered(c: TorchContext, n: AtenCall) -> str:
    """Truth values are ordered as numbers."""
    return c.cast(n, n["self"], U8) if n.dtype == BOOL else n["self"]


CONVERTERS: dict[str, Converter] = {
    "aten.sum": reduction("reduce_sum"),
    "aten.mean": reduction("reduce_mean"),
    "aten.prod": reduction("reduce_prod"),
    "aten.amax": reduction("reduce_max"),
    "aten.amin": reduction("reduce_min"),
    "aten.logsumexp": reduction("reduce_log_sum_exp"),
    "aten.any": truth("reduce_max"),
    "aten.all": truth("reduce_min"),
    "aten.argmax": argument("argmax"),
    "aten.argmin": argument("argmin"),
    "aten.max": extreme("max"),
    "aten.min": extreme("min"),
    "aten.var": variance,
    "aten.var_mean": variance_and_mean,
    "aten.linalg_vector_norm": widened(norm),
    "aten.cumsum": widened(scan("cumsum")),
    "aten.cumprod": widened(scan("cumprod")),
    "aten.logcumsumexp": widened(scan("cumlogsumexp")),
    "aten.cummax": extreme_so_far(True),
    "aten.cummin": extreme_so_far(False),
    "aten.topk": topk,
    "aten.sort": sort,
}
