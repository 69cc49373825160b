"""Eliminate nodes that return their operand, and nodes whose results have no elements.

%0 = transpose(%x) {perm=[0, 1]}           %1 = relu(%x)
%1 = relu(%0)                       →

One row an operator in `NOOPS`. Operands without elements are left out of `concat`, and a node whose
results have no elements is replaced by empty ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.arith.expr import const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import STRING
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import Shape, TensorType, Type
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.tensor.creation import FullAttrs
from tilewright.ops.tensor.manipulation import ReshapeAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph


def eliminate_noop(graph: Graph, context: PassContext) -> Graph:
    """Remove nodes that give back their operand or have no elements to compute."""
    return rewrite_graph(graph, _simplified)


def _simplified(g: Rewriter, n: Node) -> str | tuple[str, ...] | None:
    if n.regions:
        return None
    if n.op != "full" and all(map(_is_empty, n.types)):
        return tuple(_empty(g, t) for t in n.types if isinstance(t, TensorType))
    if n.op == "concat":
        return _concat(g, n)
    if n.op in REDUCTIONS and isinstance(n.attrs, ReduceAttrs):
        return _reduced(g, n, n.attrs)
    rule = NOOPS.get(n.op)
    if rule is None or not n.inputs or not isinstance(g.types[n.inputs[0]], TensorType):
        return None
    return n.inputs[0] if rule(n.attrs, g.type(n.inputs[0]), n.type) else None


def _is_empty(t: Type) -> bool:
    # a constant of numbers would not be one of texts
    return isinstance(t, TensorType) and t.dtype != STRING and const(0) in t.shape


def _empty(g: Rewriter, t: TensorType) -> str:
    shape = t.static_shape
    if shape is not None:
        return g.constant(np.empty(shape, t.dtype.numpy))
    return g.add("full", attrs=FullAttrs(t.shape, 0, t.dtype))


def _concat(g: Rewriter, n: Node) -> str | None:
    """Without operands that have no elements; one operand alone is the result."""
    parts = [i for i in n.inputs if const(0) not in g.type(i).shape]
    if len(parts) == len(n.inputs) > 1 or not parts:
        return None
    return parts[0] if len(parts) == 1 else g.add("concat", *parts, attrs=n.attrs)


def _reduced(g: Rewriter, n: Node, attrs: ReduceAttrs) -> str | None:
    """What is reduced over axes of one element each is that element."""
    x = g.type(n.inputs[0])
    if x.dtype != n.type.dtype or any(x.shape[axis] is not const(1) for axis in attrs.axes):
        return None
    if n.type.shape == x.shape:
        return n.inputs[0]
    return g.add("reshape", n.inputs[0], attrs=ReshapeAttrs(n.type.shape))


def _same_shape(_: Any, x: TensorType, y: TensorType) -> bool:
    return _equal(x.shape, y.shape)


def _equal(a: Shape, b: Shape) -> bool:
    return len(a) == len(b) and all(simplify(p) is simplify(q) for p, q in zip(a, b, strict=True))


def _zeros(dims: Shape) -> bool:
    return all(simplify(d) is const(0) for d in dims)


# Those of one element are that element.
REDUCTIONS = frozenset(("reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum"))
# An operator, and whether the node with these attributes gives back its first operand.
NOOPS: dict[str, Callable[[Any, TensorType, TensorType], bool]] = {
    "cast": lambda a, x, y: x.dtype == a.to,
    "expand": _same_shape,
    "identity": lambda a, x, y: True,
    "pad": lambda a, x, y: _zeros(a.before) and _zeros(a.after),
    "reshape": _same_shape,
    "reverse": lambda a, x, y: all(x.shape[axis] is const(1) for axis in a.axes),
    "slice": lambda a, x, y: set(a.steps) <= {1} and _zeros(a.starts) and _equal(a.stops, x.shape),
    "tile": lambda a, x, y: all(simplify(r) is const(1) for r in a.repeats),
    "transpose": lambda a, x, y: a.perm == tuple(range(len(a.perm))),
}
