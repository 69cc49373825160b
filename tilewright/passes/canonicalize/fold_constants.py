"""Constant folding: nodes that depend on constants only are computed at compile time.

%w2 = transpose(%w) {perm=[1, 0]}          w2: f32[8, 64] = const
%y = matmul(%x, %w2)                →      %y = matmul(%x, %w2)

Rearrangements of constants are NumPy views, whatever their size. Other operators are interpreted,
unless the result is large and its operands are not: a large `expand` is better computed where it is
used. Integers that are known from shapes become constants too, or, where the dimensions are
symbolic, one `dims` node in place of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from tilewright.arith.expr import Const, as_int
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I32, I64, from_numpy
from tilewright.ir.graph.dims import symbols_of
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.scalar_semantics import cast_value, quiet
from tilewright.ir.types import Shape, TensorType
from tilewright.ops.control.bind_dim import BindDimAttrs
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.interpret import evaluate_node
from tilewright.ops.registry import get_op
from tilewright.ops.tensor.creation import DimsAttrs
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

# The most work that is done at compile time for one node.
MAX_ELEMENTS = 1 << 22
MAX_FLOPS = 1 << 30
# A result may be this much larger than its operands: dequantized weights are four times as large.
MAX_FACTOR = 4
MAX_GROWTH = 1 << 16
# A `dims` node chooses among its values one by one, so it is for a few only.
MAX_DIMS = 16


def fold_constants(graph: Graph, context: PassContext) -> Graph:
    """Compute now what depends on constants only, and integers that are known."""
    return rewrite_graph(graph, _fold)


def _fold(g: Rewriter, n: Node) -> str | tuple[str, ...] | None:
    if n.regions or isinstance(n.attrs, BindDimAttrs):  # a size needs the node that gives its value
        return None
    data = [g.constant_data(i) if i else None for i in n.inputs]
    if all(d is not None for d, i in zip(data, n.inputs, strict=True) if i):
        results = _view(n, data) or _computed(g, n, data)
        if results is not None:
            return tuple(g.constant(r) for r in results)
    return _known(g, n)


def _sizes(dims: Shape) -> tuple[int, ...] | None:
    sizes = [as_int(simplify(d)) for d in dims]
    return None if None in sizes else tuple(s for s in sizes if s is not None)


def _view(n: Node, data: list[np.ndarray | None]) -> list[np.ndarray] | None:
    """The result as NumPy rearranges it, `None` if that is not all there is to the operator."""
    rule = _VIEWS.get(n.op)
    if rule is None or data[0] is None:
        return None
    found = rule(n, data[0])
    return None if found is None else [found]


def _reshape(n: Node, x: np.ndarray) -> np.ndarray | None:
    shape = n.type.static_shape
    return None if shape is None else x.reshape(shape)


def _transpose(n: Node, x: np.ndarray) -> np.ndarray:
    attrs: Any = n.attrs
    return x.transpose(attrs.perm)


def _slice(n: Node, x: np.ndarray) -> np.ndarray | None:
    attrs: Any = n.attrs
    starts, stops = _sizes(attrs.starts), _sizes(attrs.stops)
    if starts is None or stops is None:
        return None
    ranges = [range(*bounds) for bounds in zip(starts, stops, attrs.steps, strict=True)]
    if not all(_reaches(r, size) for r, size in zip(ranges, x.shape, strict=True)):
        return None
    return x[tuple(_as_slice(r) for r in ranges)]


def _reaches(r: range, size: int) -> bool:
    """Whether all of a range lies within a dimension."""
    return not r or (0 <= min(r[0], r[-1]) and max(r[0], r[-1]) < size)


def _as_slice(r: range) -> slice:
    """A range as a slice, in which a stop below zero would count from the end."""
    return slice(r.start, None if r.stop < 0 else r.stop, r.step) if r else slice(0, 0)


def _expand(n: Node, x: np.ndarray) -> np.ndarray | None:
    shape = n.type.static_shape
    if shape is None or _too_large([n.type], [x]):
        return None
    return np.broadcast_to(x, shape)


def _cast(n: Node, x: np.ndarray) -> np.ndarray | None:
    """Between floats, NumPy rounds as we do; other conversions differ at the extremes."""
    both_floats = n.type.dtype.is_float and from_numpy(x.dtype).is_float
    if not both_floats:
        return None
    with quiet():
        return np.asarray(cast_value(x, n.type.dtype))


_VIEWS: dict[str, Callable[[Node, np.ndarray], np.ndarray | None]] = {
    "cast": _cast,
    "expand": _expand,
    "identity": lambda n, x: x,
    "reshape": _reshape,
    "slice": _slice,
    "transpose": _transpose,
}


def _static_types(n: Node) -> list[TensorType] | None:
    """The types of the outputs if all are tensors of known sizes."""
    found = [t for t in n.types if isinstance(t, TensorType) and t.static_shape is not None]
    return found if len(found) == len(n.types) else None


def _too_large(types: Sequence[TensorType], data: Sequence[np.ndarray | None]) -> bool:
    """Whether keeping the results costs much more than keeping the operands."""
    size = sum(_elements(t) * t.dtype.bytes for t in types)
    given = sum(d.nbytes for d in data if d is not None)
    return size > given * MAX_FACTOR and size > given + MAX_GROWTH


def _elements(t: TensorType) -> int:
    return prod(t.static_shape or ())


def _computed(g: Rewriter, n: Node, data: list[np.ndarray | None]) -> list[np.ndarray] | None:
    types = _static_types(n)
    if any(d is not None and max(d.shape, default=0) > MAX_ELEMENTS > d.size for d in data):
        return None  # no elements, but still axes without end
    if types is None or _too_large(types, data) or sum(map(_elements, types)) > MAX_ELEMENTS:
        return None
    ins = [g.types[i] if i else None for i in n.inputs]
    flops = as_int(simplify(get_op(n.op).cost(n.attrs, ins, types)))
    if flops is None or flops > MAX_FLOPS or symbols_of(n.attrs):
        return None
    return evaluate_node(n, data, {}, ins)


def _known(g: Rewriter, n: Node) -> str | None:
    """The constant, or the `dims` node, that an integer tensor of known value is."""
    value = g.propagated_value(n.op, n.attrs, n.inputs, n.types[0]) if len(n.types) == 1 else None
    if value is None or value.shape != n.type.static_shape:
        return None
    items = [simplify(e) for e in value.reshape(-1)]
    numbers = [e.value for e in items if isinstance(e, Const)]
    if len(numbers) == len(items):
        array = np.array(numbers, np.int64).astype(n.type.dtype.numpy)
        return g.constant(array.reshape(value.shape))
    if _is_dims(g, n) or len(items) > MAX_DIMS or n.type.dtype not in (I32, I64):
        return None
    dims = g.add("dims", attrs=DimsAttrs(tuple(items), value.shape))
    return dims if n.type.dtype == I64 else g.add("cast", dims, attrs=CastAttrs(I32))


def _is_dims(g: Rewriter, n: Node) -> bool:
    """Whether the node is what `_known` would put in its place."""
    producer = g.producer(n.inputs[0]) if n.op == "cast" else n
    return producer is not None and producer.op == "dims"
