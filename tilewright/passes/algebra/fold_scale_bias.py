"""Fold scales and biases around a product with constant weights into the weights.

    %1 = conv(%x, %w)                         %1 = conv(%x, %w * s)
    %2 = mul(%1, %s)                 →        %3 = add(%1, %b)
    %3 = add(%2, %b)

They come from batch normalization, the scale of attention's queries, or a layer scale. A scalar
that scales an operand of another product scales the result instead, in its epilogue:

    matmul(transpose(mul(a, c)), b)  →   mul(matmul(transpose(a), b), c)

Weights are copied only where that removes an operator, and only if nothing else uses them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.ir.graph.nodes import Graph, Node
from tilewright.passes.algebra.conditions import joins
from tilewright.passes.context import PassContext
from tilewright.passes.rewriter import Rewriter, rewrite_graph

LAYOUT = ("transpose", "reshape", "expand")


def fold_scale_bias(graph: Graph, context: PassContext) -> Graph:
    """Fold constant scales and offsets into constant weights and biases."""
    return rewrite_graph(graph, _fold)


@dataclass(frozen=True)
class _Linear:
    """A product with constant weights, and the constant that is added to it, if any."""

    node: Node
    weights: np.ndarray
    bias: np.ndarray | None

    @property
    def rule(self) -> _Weights:
        """What the operator's weights are."""
        return _PRODUCTS[self.node.op]

    @property
    def axis(self) -> int:
        """The axis of the output's channels."""
        first = getattr(self.node.attrs, "layout", "") == "channels_first"
        return 1 if first else self.node.type.rank - 1


@dataclass(frozen=True)
class _Weights:
    """Weights with a factor for each output channel, and for each input channel."""

    by_output: Callable[[np.ndarray, np.ndarray, Any], np.ndarray]
    by_input: Callable[[np.ndarray, np.ndarray], np.ndarray]


def _by_axis(axis: int) -> Callable[..., np.ndarray]:
    """Scale along one axis of the weights."""

    def scaled(w: np.ndarray, s: np.ndarray, attrs: Any = None) -> np.ndarray:
        shape = [1] * w.ndim
        shape[axis] = -1
        return np.asarray(w * s.reshape(shape))

    return scaled


_PRODUCTS: dict[str, _Weights] = {
    "matmul": _Weights(_by_axis(-1), _by_axis(-2)),
    "conv": _Weights(_by_axis(0), _by_axis(1)),
}


def _fold(g: Rewriter, n: Node) -> str | None:
    if n.op in ("mul", "div"):
        return _scale_output(g, n)
    if n.op == "add":
        return _join_offsets(g, n)
    if n.op in _PRODUCTS:
        return _scale_input(g, n) or _scale_result(g, n)
    return None


def _constant_operand(g: Rewriter, n: Node) -> tuple[str, np.ndarray] | None:
    """The other operand, and the constant one."""
    a, b = n.inputs
    data = g.constant_data(b)
    if data is None and n.op != "div":
        a, b, data = b, a, g.constant_data(a)
    return None if data is None or g.constant_data(a) is not None else (a, data)


def _linear(g: Rewriter, value: str) -> _Linear | None:
    """The product that a value is, if it has constant weights and no other reader."""
    n, bias = g.producer(value), None
    if n is not None and n.op == "add" and g.use_count(value) <= 1:
        found = _constant_operand(g, n)
        value, bias = found if found is not None else ("", None)
        n = g.producer(value)
    if n is None or n.op not in _PRODUCTS or g.use_count(value) > 1:
        return None
    weights = g.constant_data(n.inputs[1])
    if not _foldable(weights) or g.use_count(n.inputs[1]) > 1:
        return None
    assert weights is not None
    return _Linear(n, weights, bias)


def _foldable(weights: np.ndarray | None) -> bool:
    """Whether weights are constants wide enough to be scaled without harm."""
    return weights is not None and weights.dtype in (np.float32, np.float64)


def _per_channel(linear: _Linear, data: np.ndarray) -> np.ndarray | None:
    """A constant as one factor a channel of the output, or one for all; else `None`."""
    axis = linear.axis - (linear.node.type.rank - data.ndim)
    along = data.shape[axis] if axis >= 0 else 1
    plain = data.ndim <= linear.node.type.rank and data.size == along
    return data.reshape(-1) if plain and np.isfinite(data).all() else None


def _scale_output(g: Rewriter, n: Node) -> str | None:
    found = _constant_operand(g, n)
    linear = None if found is None else _linear(g, found[0])
    # A constant may broadcast the product to a larger shape, which weights cannot.
    if found is None or linear is None or linear.node.type.shape != n.type.shape:
        return None
    scale = _per_channel(linear, found[1])
    if scale is None or (n.op == "div" and not scale.all()):
        return None
    scale, full = (1 / scale, 1 / found[1]) if n.op == "div" else (scale, found[1])
    node = linear.node
    weights = linear.rule.by_output(linear.weights, scale.astype(linear.weights.dtype), node.attrs)
    product = g.add(node.op, node.inputs[0], g.constant(weights), attrs=node.attrs)
    if linear.bias is None:
        return product
    return g.add("add", product, g.constant(linear.bias * full.astype(linear.bias.dtype)))


def _join_offsets(g: Rewriter, n: Node) -> str | None:
    """Two constants added one after the other become one."""
    found = _constant_operand(g, n)
    linear = None if found is None else _linear(g, found[0])
    if found is None or linear is None or linear.bias is None or not joins(linear.bias, found[1]):
        return None
    return g.add("add", linear.node.name, g.constant(np.asarray(linear.bias + found[1])))


def _scale_input(g: Rewriter, n: Node) -> str | None:
    """A product of a scaled input, with the scale in the weights."""
    producer, weights = g.producer(n.inputs[0]), g.constant_data(n.inputs[1])
    if producer is None or producer.op != "mul" or not _foldable(weights):
        return None
    assert weights is not None
    found = _constant_operand(g, producer)
    if found is None or max(g.use_count(v) for v in n.inputs) > 1:
        return None
    scale = _per_input_channel(g, n, found[1])
    if scale is None or g.type(found[0]).shape != producer.type.shape:
        return None
    scaled = _PRODUCTS[n.op].by_input(weights, scale.astype(weights.dtype))
    return g.add(n.op, found[0], g.constant(scaled), attrs=n.attrs)


def _per_input_channel(g: Rewriter, n: Node, data: np.ndarray) -> np.ndarray | None:
    rank = g.type(n.inputs[0]).rank
    axis = 1 if getattr(n.attrs, "layout", "") == "channels_first" else rank - 1
    along = data.shape[axis - rank + data.ndim] if axis - rank + data.ndim >= 0 else 1
    if data.ndim > rank or data.size != along or not np.isfinite(data).all():
        return None
    grouped = data.size > 1 and getattr(n.attrs, "groups", 1) > 1
    return None if grouped else data.reshape(-1)


def _scale_result(g: Rewriter, n: Node) -> str | None:
    """A product of values that are scaled by numbers: scaled by their product afterwards."""
    if n.type.dtype.bits < 32:
        return None  # a narrow result may overflow that a scaled one does not
    operands, scale = [], 1.0
    for value in n.inputs:
        plain, factor = _unscaled(g, value)
        operands.append(plain)
        scale *= factor
    if tuple(operands) == n.inputs or not np.isfinite(scale):
        return None
    product = g.add(n.op, *operands, attrs=n.attrs)
    return g.add("mul", product, g.constant(np.asarray(scale, n.type.dtype.numpy)))


def _unscaled(g: Rewriter, value: str) -> tuple[str, float]:
    """A value without the number that scales it, and that number."""
    n = g.producer(value)
    if n is None or g.use_count(value) > 1:
        return value, 1.0
    if n.op in LAYOUT:
        plain, factor = _unscaled(g, n.inputs[0])
        moved = value if plain == n.inputs[0] else g.add(n.op, plain, attrs=n.attrs)
        return moved, factor
    found = _constant_operand(g, n) if n.op == "mul" else None
    if found is None or found[1].size != 1 or g.type(found[0]) != n.type:
        return value, 1.0
    return found[0], float(found[1].reshape(-1)[0])
