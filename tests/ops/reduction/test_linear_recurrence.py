"""Linear recurrences against a loop in NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F16, F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.reduction.linear_recurrence import RecurrenceAttrs

RNG = np.random.default_rng(0)


def reference(b: np.ndarray, a: np.ndarray, attrs: RecurrenceAttrs) -> np.ndarray:
    b, a = (np.moveaxis(x, attrs.axis, 0) for x in (b, a))
    y, order = np.zeros_like(b), range(len(b))
    for step, k in enumerate(reversed(order) if attrs.reverse else order):
        before = y[k + 1 if attrs.reverse else k - 1] if step else 0
        y[k] = b[k] + (a[k] * before if step else 0)
    return np.moveaxis(y, 0, attrs.axis)


@for_each("reverse", [False, True])
@for_each("axis", [0, 1, -1])
def test_against_a_loop(axis: int, reverse: bool) -> None:
    b, a = RNG.uniform(-1, 1, (2, 2, 5, 3))
    attrs = RecurrenceAttrs(axis, reverse)
    found = run_op("linear_recurrence", b, a, attrs=attrs, dims=[("N", 5, "M"), ("N", 5, "M")])
    np.testing.assert_allclose(found, reference(b, a, attrs))


def test_the_first_factor_meets_nothing() -> None:
    a = np.array([np.inf, 2.0, np.nan])
    found = run_op("linear_recurrence", np.ones(3), a, attrs=RecurrenceAttrs(0))
    np.testing.assert_array_equal(found, [1, 3, np.nan])


@pytest.mark.parametrize("dtype", [F32, F16])
def test_natively(dtype: type) -> None:
    g = GraphBuilder("f")
    shape = tensor(dtype, 5, Var("N"), 7)  # type: ignore[arg-type]
    b, a = g.input("b", shape), g.input("a", shape)
    axes = [(axis, reverse) for axis in range(3) for reverse in (False, True)]
    graph = g.graph(*(g.add("linear_recurrence", b, a, attrs=RecurrenceAttrs(*p)) for p in axes))
    for n in (3, 1, 0):
        check_native(graph, random_inputs(graph, {"N": n}))


def test_refusals() -> None:
    with pytest.raises(TypeCheckError, match="differ in shape"):
        run_op("linear_recurrence", np.ones(3), np.ones(4), attrs=RecurrenceAttrs(0))
    with pytest.raises(TypeCheckError, match="a scalar has no axis"):
        run_op("linear_recurrence", np.ones(()), np.ones(()), attrs=RecurrenceAttrs(0))
