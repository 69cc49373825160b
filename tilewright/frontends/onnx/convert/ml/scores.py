"""What models of ai.onnx.ml make of their scores: transformations and labels."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt

import numpy as np

from tilewright.arith.expr import const
from tilewright.core.dtypes import I64
from tilewright.frontends.onnx.context import OnnxContext, OnnxNode
from tilewright.frontends.onnx.convert.slicing import add_slice
from tilewright.frontends.onnx.node_scope import NodeValue, traced
from tilewright.ops.reduction.reduce import ArgAttrs, ReduceAttrs
from tilewright.ops.reduction.softmax import SoftmaxAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.slicing import ConcatAttrs
from tilewright.ops.traced_value import where

ROW = ReduceAttrs((1,), keepdims=True)
# The constant of Winitzki's approximation of the inverse error function.
WINITZKI = 0.147


def _softmax(x: NodeValue) -> NodeValue:
    return x.apply("softmax", attrs=SoftmaxAttrs(1))


def _softmax_zero(x: NodeValue) -> NodeValue:
    """Softmax that leaves zeros what they are."""
    greatest = x.apply("reduce_max", attrs=ROW)
    is_zero = x.apply("abs").apply("less_or_equal", 1e-7)
    powers = where(is_zero, x * (-greatest).apply("exp"), (x - greatest).apply("exp"))
    total = powers.apply("reduce_sum", attrs=ROW)
    return where(total.apply("equal", 0), powers * 0 + 0.5, powers / total)


def _probit(x: NodeValue) -> NodeValue:
    """The inverse of the normal distribution."""
    v = x * 2 - 1
    rest = (1 - v) * (v + 1)
    log = rest.apply("log")
    half = log * 0.5 + 2 / (pi * WINITZKI)
    root = ((half * half - log * (1 / WINITZKI)).apply("sqrt") - half).apply("sqrt")
    return where(rest.apply("equal", 0), x * 0, v.apply("sign") * root * sqrt(2))


POST_TRANSFORMS: dict[str, Callable[[NodeValue], NodeValue]] = {
    "NONE": lambda x: x,
    "LOGISTIC": lambda x: x.apply("sigmoid"),
    "SOFTMAX": _softmax,
    "SOFTMAX_ZERO": _softmax_zero,
    "PROBIT": _probit,
}


def post_transform(n: OnnxNode) -> str:
    """The name of the transformation, which is one of the table's."""
    name = n.str_attr("post_transform", "NONE")
    if name not in POST_TRANSFORMS:
        raise n.invalid(f"post_transform is {name!r}", f"one of {', '.join(POST_TRANSFORMS)}")
    return name


def transformed(x: NodeValue) -> NodeValue:
    """Scores as the node's `post_transform` wants them."""
    return POST_TRANSFORMS[post_transform(x.g.n)](x)


def labels_of(n: OnnxNode, numbers: str) -> np.ndarray:
    """The labels of the classes: texts, or the integers of the attribute `numbers`."""
    texts = n.strs_attr("classlabels_strings", ())
    labels = np.array(texts, object) if texts else np.array(n.ints_attr(numbers, ()), np.int64)
    if not labels.size:
        raise n.invalid("it has no labels", f"give {numbers} or classlabels_strings")
    return labels


def chosen(c: OnnxContext, n: OnnxNode, scores: NodeValue, labels: np.ndarray) -> str:
    """The label of the greatest score of each row."""
    place = scores.apply("argmax", attrs=ArgAttrs(1, keepdims=False))
    return c.add(n, "gather", c.table(labels), place.name, attrs=GatherAttrs(0, "clip"))


def either(condition: NodeValue, labels: np.ndarray) -> NodeValue:
    """The second label where a condition on columns `[rows, 1]` holds, else the first."""
    c, n = condition.g.c, condition.g.n
    place = condition.cast(I64).apply("reduce_max", attrs=ReduceAttrs((1,), keepdims=False))
    return traced(c, n, c.table(labels)).apply("gather", place, attrs=GatherAttrs(0, "clip"))


def beside(first: NodeValue, second: NodeValue) -> NodeValue:
    """Two columns side by side."""
    return first.apply("concat", second, attrs=ConcatAttrs(1))


def column(x: NodeValue, index: int) -> NodeValue:
    """One column of a matrix, kept as a column."""
    name = add_slice(x.g.c, x.name, {1: (const(index), const(index + 1), 1)}, "column")
    return x.called(name)
