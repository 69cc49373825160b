"""The words that gradient rules are written in."""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F64
from tilewright.ir.types import tensor
from tilewright.ops.gradient.formula import add_rows, constant, modulo, shifted, value
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.op import GraphOps
from tilewright.ops.traced_value import Value

X = np.arange(6.0).reshape(2, 3)


def made(x: Value, found: Value, given: np.ndarray = X) -> np.ndarray:
    g = x.g
    assert isinstance(g, GraphBuilder)
    return next(iter(run_graph(g.graph(found.name), {"x": given}).values()))


def operand(*shape: int | Var) -> Value:
    g: GraphOps = GraphBuilder("g")
    assert isinstance(g, GraphBuilder)
    return value(g, g.input("x", tensor(F64, *shape)))


def test_shifted() -> None:
    x = operand(2, 3)
    np.testing.assert_array_equal(made(x, shifted(x, 1, ahead=True)), [[0, 0, 1], [0, 3, 4]])
    np.testing.assert_array_equal(made(x, shifted(x, -1, ahead=False)), [[1, 2, 0], [4, 5, 0]])


def test_rows_that_meet_are_added() -> None:
    x = operand(2, 3)
    places = constant(x, np.array([1, 1, 0]))
    found = made(x, add_rows(x, 1, const(4), places, "raise"))
    np.testing.assert_array_equal(found, [[2, 1, 0, 0], [5, 7, 0, 0]])


def test_remainders_by_a_size() -> None:
    x = operand(Var("N"), 3)
    numbers = constant(x, np.array([5, 2, 3]))
    np.testing.assert_array_equal(made(x, modulo(numbers, x.shape[0])), [1, 0, 1])
