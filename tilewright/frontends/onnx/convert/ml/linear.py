"""Linear models of ai.onnx.ml: one product, then what is made of the scores."""

from __future__ import annotations

import numpy as np

from tilewright.core.dtypes import F32
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.ml.scores import (
    beside,
    chosen,
    either,
    labels_of,
    post_transform,
    transformed,
)
from tilewright.frontends.onnx.node_scope import NodeValue, traced

DOMAIN = "ai.onnx.ml"


def _scores(c: OnnxContext, n: OnnxNode, count: int) -> NodeValue:
    """`count` scores a row: a product with the coefficients, and intercepts."""
    x = traced(c, n, n.required(0)).cast(F32)
    weights = np.array(n.floats_attr("coefficients"), np.float32).reshape(count, -1)
    scores = x.apply("matmul", traced(c, n, c.constant(np.ascontiguousarray(weights.T), F32)))
    intercepts = np.array(n.floats_attr("intercepts", ()), np.float32)
    return scores + traced(c, n, c.constant(intercepts, F32)) if intercepts.size else scores


def linear_regressor(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """Targets as linear functions of features."""
    return (transformed(_scores(c, n, n.int_attr("targets", 1))).name,)


def linear_classifier(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
    """The class of the greatest score, and the scores; a single score decides between two."""
    labels = labels_of(n, "classlabels_ints")
    columns = len(n.floats_attr("intercepts", ())) or len(labels)
    scores = _scores(c, n, columns)
    if columns > 1:
        scores = transformed(scores)
        return chosen(c, n, scores, labels), scores.name
    if len(labels) == 2:
        label = either(scores.apply("greater", 0), labels)
        return label.name, transformed(beside(-scores, scores)).name
    if labels.dtype.kind == "O":
        raise n.unsupported("a single label that is a text", "give two labels")
    scores = transformed(scores)
    threshold = 0 if post_transform(n) == "NONE" else 0.5
    label = either(scores.apply("greater_or_equal", threshold), np.array([0, labels[0]]))
    return label.name, scores.name


CONVERTERS: dict[str, Converter] = {
    f"{DOMAIN}::LinearClassifier": linear_classifier,
    f"{DOMAIN}::LinearRegressor": linear_regressor,
}
