"""Support vector machines of ai.onnx.ml: products with support vectors, a kernel, sums of pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from tilewright.arith.expr import const
from tilewright.core.dtypes import F32
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.manipulation import add_reshape
from tilewright.frontends.onnx.convert.ml.scores import (
    beside,
    chosen,
    labels_of,
    transformed,
)
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.ops.reduction.reduce import ReduceAttrs

DOMAIN = "ai.onnx.ml"
KERNELS = ("LINEAR", "POLY", "RBF", "SIGMOID")


def _kernel(x: NodeValue, vectors: np.ndarray) -> NodeValue:
    """The kernel of every row with every support vector, `[rows, vectors]`."""
    c, n = x.g.c, x.g.n
    kind = n.str_attr("kernel_type", "LINEAR")
    if kind not in KERNELS:
        raise n.invalid(f"kernel_type is {kind!r}", f"one of {', '.join(KERNELS)}")
    gamma, shift, degree = n.floats_attr("kernel_params", (0.0, 0.0, 0.0))
    if kind == "RBF":
        rows, size = c.shape(n, x.name, 2)
        column = traced(c, n, add_reshape(c, n, x.name, (rows, const(1), size)))
        difference = column - traced(c, n, c.constant(vectors, F32))
        squares = difference * difference
        distance = squares.apply("reduce_sum", attrs=ReduceAttrs((2,), keepdims=False))
        return (distance * -gamma).apply("exp")
    dot = x.apply("matmul", traced(c, n, c.constant(np.ascontiguousarray(vectors.T), F32)))
    if kind == "LINEAR":
        return dot
    dot = dot * gamma + shift
    return dot.apply("tanh") if kind == "SIGMOID" else dot.apply("pow", int(degree))


def _floats(n: OnnxNode, name: str) -> np.ndarray:
    return np.array(n.floats_attr(name, ()), np.float32)


def svm_regressor(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """A weighted sum of kernels, or which side of it a row is on."""
    x = traced(c, n, n.required(0)).cast(F32)
    supports = n.int_attr("n_supports", 0)
    weights, vectors = _floats(n, "coefficients"), _floats(n, "support_vectors")
    if supports:
        x = _kernel(x, vectors.reshape(supports, -1))
    score = x.apply("matmul", traced(c, n, c.constant(weights.reshape(-1, 1), F32)))
    score = score + float(_floats(n, "rho")[0])
    if n.int_attr("one_class", 0):
        score = score.apply("greater", 0).cast(F32) * 2 - 1
    return (transformed(score).name,)


def svm_classifier(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Pairs of classes vote; without support vectors every class has a score of its own."""
    x, labels = traced(c, n, n.required(0)).cast(F32), labels_of(n, "classlabels_ints")
    rho, per_class = _floats(n, "rho"), n.ints_attr("vectors_per_class", ())
    weights = _floats(n, "coefficients")
    if not per_class:
        rows = weights.reshape(len(labels), -1)
        scores = x.apply("matmul", traced(c, n, c.constant(np.ascontiguousarray(rows.T), F32)))
        scores = scores + float(rho[0])
        return chosen(c, n, scores, labels), transformed(scores).name
    count = sum(per_class)
    kernels = _kernel(x, _floats(n, "support_vectors").reshape(count, -1))
    pairs = _pair_weights(weights.reshape(-1, count), per_class)
    scores = kernels.apply("matmul", traced(c, n, c.constant(pairs, F32)))
    scores = scores + traced(c, n, c.constant(rho, F32))
    label = chosen(c, n, _votes(scores, len(labels)), labels)
    if n.has_attr("prob_a"):
        return label, transformed(_probabilities(scores, len(labels))).name
    if len(labels) == 2:
        return label, transformed(beside(-scores, scores)).name
    return label, transformed(scores).name


def _pair_weights(weights: np.ndarray, per_class: tuple[int, ...]) -> np.ndarray:
    """One column a pair of classes: the weights of the support vectors of both."""
    ends = np.cumsum((0, *per_class))
    columns = []
    for i, j in combinations(range(len(per_class)), 2):
        column = np.zeros(ends[-1], np.float32)
        for own, other in ((i, j - 1), (j, i)):
            column[ends[own] : ends[own + 1]] = weights[other, ends[own] : ends[own + 1]]
        columns.append(column)
    return np.stack(columns, 1)


def _votes(scores: NodeValue, classes: int) -> NodeValue:
    """How many pairs each class wins."""
    pairs = list(combinations(range(classes), 2))
    won, lost = (np.zeros((len(pairs), classes), np.float32) for _ in range(2))
    for p, (i, j) in enumerate(pairs):
        won[p, i] = lost[p, j] = 1
    c, n = scores.g.c, scores.g.n
    first = scores.apply("greater", 0).cast(F32)
    win = first.apply("matmul", traced(c, n, c.constant(won - lost, F32)))
    return win + traced(c, n, c.constant(lost.sum(0), F32))


def _probabilities(scores: NodeValue, classes: int) -> NodeValue:
    """Of classes, from those of pairs, which are logistic functions of their scores."""
    c, n = scores.g.c, scores.g.n
    a, b = (traced(c, n, c.constant(_floats(n, name), F32)) for name in ("prob_a", "prob_b"))
    pair = (-(scores * a + b)).apply("sigmoid").apply("clip", 1e-7, 1 - 1e-7)
    pairs = list(combinations(range(classes), 2))
    first, second = (np.zeros((len(pairs), classes, classes), np.float32) for _ in range(2))
    for p, (i, j) in enumerate(pairs):
        first[p, i, j] = second[p, j, i] = 1
    signs = (first - second).reshape(len(pairs), -1)
    other = second.sum(0).reshape(-1)
    flat = pair.apply("matmul", traced(c, n, c.constant(signs, F32)))
    flat = flat + traced(c, n, c.constant(other, F32))
    rows = c.type(flat.name).shape[0]
    square = add_reshape(c, n, flat.name, (rows, const(classes), const(classes)))
    return traced(c, n, square).apply("pairwise_coupling")


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::SVMClassifier": svm_classifier,
    f"{DOMAIN}::SVMRegressor": svm_regressor,
}
