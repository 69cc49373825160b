"""Reductions and running sums."""

from __future__ import annotations

from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, axes_of, simple
from tilewright.ops.op import normalize_axis
from tilewright.ops.reduction.cumulative import ScanAttrs
from tilewright.ops.reduction.reduce import ArgAttrs, ReduceAttrs


def reduction(op: str) -> Converter:
    """A reduction over `axes`; none given means all, unless the node says that it means none."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        x = n.required(0)
        rank = c.type(x).rank
        axes = axes_of(c, n)
        if axes:  # one that is named twice is reduced once
            axes = tuple(dict.fromkeys(normalize_axis(n.op_type, a, rank) for a in axes))
        if not axes and not n.int_attr("noop_with_empty_axes", 0):
            axes = tuple(range(rank))
        attrs = ReduceAttrs(axes or (), bool(n.int_attr("keepdims", 1)))
        return (c.add(n, op, x, attrs=attrs),)

    return convert


def scan(op: str) -> Converter:
    """A running sum or product; the axis is an input."""

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        axis = n.only(c.static_ints(n, 1), 1)
        exclusive, reverse = (bool(n.int_attr(a, 0)) for a in ("exclusive", "reverse"))
        return (c.add(n, op, n.required(0), attrs=ScanAttrs(axis, exclusive, reverse)),)

    return convert


def _arg(n: OnnxNode) -> ArgAttrs:
    return ArgAttrs(
        n.int_attr("axis", 0),
        bool(n.int_attr("keepdims", 1)),
        bool(n.int_attr("select_last_index", 0)),
    )


CONVERTERS: dict[str, Converter] = {
    "ReduceSum": reduction("reduce_sum"),
    "ReduceMean": reduction("reduce_mean"),
    "ReduceMax": reduction("reduce_max"),
    "ReduceMin": reduction("reduce_min"),
    "ReduceProd": reduction("reduce_prod"),
    "ReduceL1": reduction("reduce_l1"),
    "ReduceL2": reduction("reduce_l2"),
    "ReduceLogSum": reduction("reduce_log_sum"),
    "ReduceLogSumExp": reduction("reduce_log_sum_exp"),
    "ReduceSumSquare": reduction("reduce_sum_square"),
    "ArgMax": simple("argmax", _arg),
    "ArgMin": simple("argmin", _arg),
    "CumSum": scan("cumsum"),
    "CumProd": scan("cumprod"),
}
