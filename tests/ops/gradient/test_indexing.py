"""Gradients of gathering and scattering against differences: places that are met several times."""

from __future__ import annotations

import numpy as np

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule, gradient_graph
from tilewright.arith.expr import const
from tilewright.ops.tensor.indexing import (
    GatherAttrs,
    GatherNdAttrs,
    OneHotAttrs,
    ReverseSequenceAttrs,
)
from tilewright.ops.tensor.scatter import ScatterElementsAttrs, ScatterNdAttrs
from tilewright.ops.tensor.tensor_scatter import TensorScatterAttrs
from tilewright.ops.tensor.topk import TopKAttrs

RNG = np.random.default_rng(4)
X = RNG.uniform(-1, 2, (2, 3, 4))
REDUCTIONS = ("none", "add", "mul", "min", "max")


def test_gather() -> None:
    check_rule("gather", X, np.array([[0, 2], [1, -1], [1, 1]]), attrs=GatherAttrs(1))
    check_rule("gather", X, np.array(1), attrs=GatherAttrs(0))
    check_rule("gather", X, np.array([7, 0]), attrs=GatherAttrs(2, "clip"))
    check_rule("gather", X, np.zeros((0, 2), np.int64), attrs=GatherAttrs(-1))


def test_gather_elements() -> None:
    indices = RNG.integers(-4, 4, (2, 2, 5))
    check_rule("gather_elements", X, indices, attrs=GatherAttrs(2))


@for_each("batch, shape", [(0, (3, 2)), (1, (2, 5, 1)), (2, (2, 3, 2, 1)), (1, (2, 4, 2))])
def test_gather_nd(batch: int, shape: tuple[int, ...]) -> None:
    indices = RNG.integers(-2, 2, shape)
    check_rule("gather_nd", X, indices, attrs=GatherNdAttrs(batch))


def test_an_embedding_natively() -> None:
    table, rows = np.zeros((11, 5), np.float32), np.zeros((2, 3), np.int32)
    _, backward = gradient_graph("gather", (table, rows), GatherAttrs(0))
    given = random_inputs(backward, {})
    given["x1"] = np.array([[1, 10, 1], [0, -1, 1]], np.int32)
    check_native(backward, given)


def test_one_hot() -> None:
    classes = np.array([[0, 2], [5, -1]])
    check_rule("one_hot", classes, np.array([0.2, 3.0]), attrs=OneHotAttrs(const(4), 1))


def test_reverse_sequence() -> None:
    check_rule("reverse_sequence", X, np.array([1, 3]), attrs=ReverseSequenceAttrs(1, 0))


@for_each("reduction", REDUCTIONS)
def test_scatter(reduction: str) -> None:
    indices, updates = RNG.integers(-3, 3, (2, 5, 4)), RNG.uniform(-1, 2, (2, 5, 4))
    attrs = ScatterElementsAttrs(1, reduction)
    check_rule("scatter_elements", X, indices, updates, attrs=attrs)
    tuples, slices = RNG.integers(-2, 2, (5, 2)), RNG.uniform(-1, 2, (5, 4))
    check_rule("scatter_nd", X, tuples, slices, attrs=ScatterNdAttrs(reduction))


def test_factors_of_zero() -> None:
    updates, data = RNG.uniform(1, 2, (2, 3, 4)), X.copy()
    updates[0, 0] = updates[1, :2, 1] = data[1, 2, 3] = 0
    indices = RNG.integers(0, 3, (2, 3, 4))
    attrs = ScatterElementsAttrs(1, "mul")
    check_rule("scatter_elements", data, indices, updates, attrs=attrs)


def test_a_cache_that_is_written() -> None:
    cache, update = RNG.uniform(-1, 1, (2, 3, 5, 2)), RNG.uniform(-1, 1, (2, 3, 2, 2))
    check_rule("tensor_scatter", cache, update, attrs=TensorScatterAttrs(-2))
    starts = np.array([1, 3])
    check_rule("tensor_scatter", cache, update, starts, attrs=TensorScatterAttrs(-2))
    beyond = np.array([4, 0])
    check_rule("tensor_scatter", cache, update, beyond, attrs=TensorScatterAttrs(-2, True))


def test_greatest_elements() -> None:
    check_rule("topk", X, attrs=TopKAttrs(const(2), 1))
    check_rule("topk", X, attrs=TopKAttrs(const(3), -1, False))
