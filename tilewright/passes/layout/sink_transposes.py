"""Sink transposes: they move down through the graph until they meet another and cancel.

    add(transpose(a), transpose(b))    →   transpose(add(a, b))
    mul(transpose(a), constant)        →   transpose(mul(a, transposed constant))
    reduce(transpose(a), axes)         →   transpose(reduce(a, permuted axes))
    resize(transpose(a))               →   transpose(resize(a)), along the permuted axes
    transpose(transpose(a))            →   transpose(a), or a

A transpose that only moves dimensions of size 1 is a reshape, which costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.arith.expr import const
from tilewright.ir.graph.nodes import Node
from tilewright.ir.types import Shape
from tilewright.ops.elementwise.define import is_pointwise
from tilewright.ops.image.resize import ResizeAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.manipulation import ReshapeAttrs, TransposeAttrs
from tilewright.passes.rewriter import Rewriter

Perm = tuple[int, ...]
ONE = const(1)


def sink_transpose(g: Rewriter, n: Node) -> str | tuple[str, ...] | None:
    """The node computed before the transposes that it reads, if it can be."""
    if n.op == "transpose":
        return _merge(g, n)
    if n.op != "fused" and is_pointwise(get_op(n.op)):
        return _sink_pointwise(g, n)
    rule = _AXIS_RULES.get(n.op)
    source = _transposed(g, n.inputs[0]) if rule is not None and n.inputs else None
    return None if rule is None or source is None else rule(g, n, *source)


def sinks_through(n: Node) -> bool:
    """Whether a transpose of what a node reads can become one of what it computes."""
    if n.op in ("fused", "transpose"):
        return False
    return len(n.outputs) == 1 and (is_pointwise(get_op(n.op)) or n.op in _AXIS_RULES)


def _transposed(g: Rewriter, value: str) -> tuple[str, Perm] | None:
    """What a value is the transpose of, and by which permutation."""
    producer = g.producer(value)
    if producer is None or not isinstance(producer.attrs, TransposeAttrs):
        return None
    return producer.inputs[0], producer.attrs.perm


def _merge(g: Rewriter, n: Node) -> str | None:
    assert isinstance(n.attrs, TransposeAttrs)
    perm, base = n.attrs.perm, n.inputs[0]
    source = _transposed(g, base)
    if source is not None:
        base, first = source
        perm = tuple(first[p] for p in perm)
    if perm == tuple(range(len(perm))):
        return base
    if _moves_units_only(g.type(base).shape, perm):
        return g.add("reshape", base, attrs=ReshapeAttrs(n.type.shape))
    if source is None:
        return None
    return g.add("transpose", base, attrs=TransposeAttrs(perm))


def _moves_units_only(shape: Shape, perm: Perm) -> bool:
    kept = [p for p in perm if shape[p] is not ONE]
    return kept == sorted(kept)


def _sink_pointwise(g: Rewriter, n: Node) -> str | None:
    """Every operand is the same transpose, a constant or a scalar: compute before transposing."""
    rank = n.type.rank
    perms = {s[1] for i in n.inputs if i and (s := _transposed(g, i)) is not None}
    if len(perms) != 1 or len(n.outputs) != 1:
        return None
    perm = perms.pop()
    if len(perm) != rank:
        return None
    bases = [_operand(g, i, perm) for i in n.inputs]
    if any(b is None for b in bases):
        return None
    inner = g.add(n.op, *(b for b in bases if b is not None), attrs=n.attrs)
    if g.type(inner).rank != rank:
        return None
    return g.add("transpose", inner, attrs=TransposeAttrs(perm))


def _operand(g: Rewriter, value: str, perm: Perm) -> str | None:
    """An operand as it is before the transpose, `None` if it has no such form for free."""
    if not value:
        return ""
    source = _transposed(g, value)
    if source is not None:
        return source[0]
    t = g.type(value)
    if all(d is ONE for d in t.shape):
        return value
    inverse = tuple(int(p) for p in np.argsort(perm))
    data = g.constant_data(value)
    if data is not None:
        full = data.reshape((1,) * (len(perm) - data.ndim) + data.shape)
        return g.constant(np.transpose(full, inverse))
    padded = (ONE,) * (len(perm) - t.rank) + t.shape
    if not _moves_units_only(padded, inverse):
        return None
    return g.add("reshape", value, attrs=ReshapeAttrs(tuple(padded[p] for p in inverse)))


def _sink_reduce(g: Rewriter, n: Node, base: str, perm: Perm) -> str:
    """Reduce over where the axes were; without them, the others keep their order."""
    attrs = n.attrs
    assert isinstance(attrs, ReduceAttrs)
    rank = len(perm)
    axes = tuple(a % rank for a in attrs.axes)
    inner = g.add(n.op, base, attrs=replace(attrs, axes=tuple(sorted(perm[a] for a in axes))))
    if attrs.keepdims:
        return g.add("transpose", inner, attrs=TransposeAttrs(perm))
    kept = [p for a, p in enumerate(perm) if a not in axes]
    order = tuple(sorted(kept).index(p) for p in kept)
    return g.add("transpose", inner, attrs=TransposeAttrs(order)) if len(order) > 1 else inner


def _sink_axis(g: Rewriter, n: Node, base: str, perm: Perm) -> tuple[str, ...] | None:
    """Operators along one axis (softmax, concat): the same along where that axis was."""
    attrs: Any = n.attrs
    bases = [_transposed(g, i) for i in n.inputs]
    if any(b is None or b[1] != perm for b in bases):
        return None
    moved = replace(attrs, axis=perm[attrs.axis % len(perm)])
    outputs = g.add_many(n.op, *(b[0] for b in bases if b), attrs=moved)
    return tuple(g.add("transpose", o, attrs=TransposeAttrs(perm)) for o in outputs)


def _sink_resize(g: Rewriter, n: Node, base: str, perm: Perm) -> str:
    """Sample before transposing, along where the axes were."""
    attrs = n.attrs
    assert isinstance(attrs, ResizeAttrs)
    where = [perm.index(d) for d in range(len(perm))]
    moved = replace(
        attrs,
        shape=tuple(attrs.shape[w] for w in where),
        scales=tuple(attrs.scales[w] for w in where),
        roi=tuple(attrs.roi[w] for w in where) if attrs.roi else (),
    )
    inner = g.add(n.op, base, attrs=moved)
    return g.add("transpose", inner, attrs=TransposeAttrs(perm))


AxisRule = Callable[[Rewriter, Node, str, Perm], "str | tuple[str, ...] | None"]
_REDUCTIONS: Sequence[str] = (
    "reduce_sum",
    "reduce_mean",
    "reduce_max",
    "reduce_min",
    "reduce_prod",
    "reduce_l1",
    "reduce_l2",
    "reduce_sum_square",
)
_AXIS_RULES: dict[str, AxisRule] = {
    **dict.fromkeys(_REDUCTIONS, _sink_reduce),
    "concat": _sink_axis,
    "resize": _sink_resize,
    "resize_nearest": _sink_resize,
}
