"""Bounds and counts that a model computes: the results have data-dependent dimensions.

Numbers are clamped to the tensor as ONNX defines, before dimensions are bound to them.
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64
from tilewright.frontends.onnx.context import OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.nonzero import number
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.ops.tensor.creation import RangeAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.ops.tensor.slicing import SliceAttrs


def elements(c: OnnxContext, n: OnnxNode, index: int, most: int) -> list[NodeValue]:
    """Each element of an input, a row of at most so many integers, as i64; their number is known.

    The model says how many there are, and that may be any number.
    """
    name = n.required(index)
    length = as_int(c.type(name).elements)
    if length is None:
        raise c.needs_value(n, index)
    if length > most:
        raise n.invalid(f"input {index} has {length} elements, {most} are the most that fit")
    row = traced(c, n, c.cast(n, name, I64)).apply("reshape", attrs=ReshapeAttrs((const(length),)))
    cuts = [SliceAttrs((const(i),), (const(i + 1),), (1,), inside=True) for i in range(length)]
    return [row.apply("slice", attrs=cut) for cut in cuts]


def bound_dim(c: OnnxContext, n: OnnxNode, value: NodeValue, bound: Expr) -> Expr:
    """A number of the model as a size, which is at most `bound`."""
    return c.bind_dim(n, value.name, simplify(bound))


def require_true(c: OnnxContext, n: OnnxNode, condition: NodeValue, what: str) -> None:
    """Refuse a run in which a bool of one element, which the model computes, is false."""
    holds = bound_dim(c, n, condition.cast(I64), const(1))
    c.require(n, holds.eq(const(1)), what)


def sliced(
    c: OnnxContext, n: OnnxNode, x: str, axis: int, bounds: tuple[NodeValue, NodeValue], step: int
) -> str:
    """A tensor cut along an axis from a start to a stop, both computed by the model."""
    dim = c.type(x).shape[axis]
    size = traced(c, n, number(c, n, dim))
    high = size if step > 0 else size - 1
    start, stop = (
        _inside(b, size, low, high) for b, low in zip(bounds, (0, min(step, 0)), strict=True)
    )
    span = stop - start if step > 0 else start - stop
    count = ((span + (abs(step) - 1)) / abs(step)).apply("max", 0)
    found = bound_dim(c, n, count, dim)
    if _next_to_each_other(c, bounds):
        # what has one element must broadcast, so it has to be known to have one
        c.g.add_check(found.eq(const(1)), "Slice: a bound lies outside the tensor", n.loc)
        found = const(1)
    steps = traced(c, n, c.add(n, "range", attrs=RangeAttrs(const(0), const(step), found)))
    return c.add(n, "gather", x, (steps + start).name, attrs=GatherAttrs(axis, "clip"))


def _inside(
    value: NodeValue, size: NodeValue, low: NodeValue | int, high: NodeValue | int
) -> NodeValue:
    """A bound as ONNX counts it: from the end where it is negative, and not beyond either end."""
    counted = value.apply("less", 0).apply("where", value.apply("max", -size - 1) + size, value)
    return counted.apply("max", low).apply("min", high)


def _next_to_each_other(c: OnnxContext, bounds: tuple[NodeValue, NodeValue]) -> bool:
    """Whether a model has computed the stop as the start plus one."""
    start, stop = (_source(c, b.name) for b in bounds)
    made = next((node for node in reversed(c.g.nodes) if stop in node.outputs), None)
    if made is None or made.op != "add":
        return False
    others = [i for i in map(lambda i: _source(c, i), made.inputs) if i != start]
    data = c.constant_of(others[0]) if len(others) == 1 else None
    return data is not None and data.size == 1 and int(data.reshape(-1)[0]) == 1


def _source(c: OnnxContext, name: str) -> str:
    """The value that another one is a slice, a cast or another shape of."""
    for node in reversed(c.g.nodes):
        if name in node.outputs and node.op in ("slice", "reshape", "cast", "identity"):
            name = node.inputs[0]
    return name
