"""The reverse sweep against central differences; `tests/ops/gradient` goes through every rule."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tilewright.arith.expr import const
from tilewright.autodiff.backward import differentiable, gradients, nodes_between, pullback
from tilewright.core.dtypes import C64, F32, F64, I64
from tilewright.core.errors import UnsupportedError
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.linalg.einsum import EinsumAttrs
from tilewright.ops.reduction.reduce import ReduceAttrs
from tilewright.ops.reduction.softmax import AxisAttrs, SoftmaxAttrs
from tilewright.ops.tensor.indexing import GatherAttrs
from tilewright.ops.tensor.manipulation import ExpandAttrs, TransposeAttrs
from tilewright.ops.tensor.topk import TopKAttrs
from tilewright.ops.traced_value import TracedValue, Value, where

RNG = np.random.default_rng(6)
A = RNG.uniform(0.2, 0.9, (3, 4))
B = RNG.uniform(1.2, 1.9, (1, 4))
ROWS = ReduceAttrs((1,), keepdims=False)
LAST = SoftmaxAttrs(1)

FORMULAS: dict[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a, b: -(a * b),
    "pow": lambda a, b: a.apply("pow", b),
    "exp": lambda a, b: (a * b).apply("exp"),
    "log": lambda a, b: (a * b).apply("log"),
    "sqrt": lambda a, b: (a * b).apply("sqrt"),
    "reciprocal": lambda a, b: (a * b).apply("reciprocal"),
    "sin": lambda a, b: (a * b).apply("sin"),
    "cos": lambda a, b: (a * b).apply("cos"),
    "tanh": lambda a, b: (a * b).apply("tanh"),
    "erf": lambda a, b: (a * b).apply("erf"),
    "sigmoid": lambda a, b: (a * b).apply("sigmoid"),
    "softplus": lambda a, b: (a - b).apply("softplus"),
    "relu": lambda a, b: (a * 2 - b).apply("relu") * b,
    "abs": lambda a, b: (a * 2 - b).apply("abs") * b,
    "identity": lambda a, b: (a * b).apply("identity"),
    "cast": lambda a, b: (a * b).apply("cast", attrs=CastAttrs(F64)),
    "max": lambda a, b: (a * 2).apply("max", b) * a,
    "min": lambda a, b: (a * 2).apply("min", b) * a,
    "where": lambda a, b: where((a * 2).apply("less", b), a * a, b),
    "matmul": lambda a, b: a.apply("matmul", b.apply("transpose", attrs=TransposeAttrs((1, 0)))),
    "transpose": lambda a, b: (a * b).apply("transpose", attrs=TransposeAttrs((1, 0))),
    "reshape": lambda a, b: (a * b).reshape(a.shape[::-1]).apply("exp"),
    "expand": lambda a, b: b.apply("expand", attrs=ExpandAttrs(a.shape)) * a,
    "reduce_sum": lambda a, b: (a * b).apply("reduce_sum", attrs=ROWS).apply("exp"),
    "reduce_mean": lambda a, b: (a * b).apply("reduce_mean", attrs=ROWS).apply("exp"),
    "softmax": lambda a, b: (a * b).apply("softmax", attrs=LAST) * a,
    "log_softmax": lambda a, b: (a * b).apply("log_softmax", attrs=AxisAttrs(1)) * a,
}


def graph_of(formula: Callable[[Value, Value], Value]) -> Graph:
    """`y`, and its gradients for `a` and `b`."""
    g = GraphBuilder("g")
    a, b = (TracedValue(g, g.input(n, tensor(F64, *x.shape))) for n, x in (("a", A), ("b", B)))
    y = formula(a, b).name
    found = gradients(g, nodes_between(g.nodes, ("a", "b"), y), ("a", "b"), y)
    return g.graph(y, found["a"], found["b"])


def run(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    return list(run_graph(graph, dict(zip(("a", "b"), arrays, strict=True))).values())


def differences(graph: Graph, which: int) -> np.ndarray:
    """How the sum of `y` changes with each element of an input."""
    arrays, step = [A, B], 1e-5
    found = np.zeros_like(arrays[which])
    for place in np.ndindex(found.shape):
        sides = []
        for sign in (1, -1):
            moved = [x.copy() for x in arrays]
            moved[which][place] += sign * step
            sides.append(run(graph, moved)[0].sum())
        found[place] = (sides[0] - sides[1]) / (2 * step)
    return found


@pytest.mark.parametrize("op", FORMULAS)
def test_against_differences(op: str) -> None:
    graph = graph_of(FORMULAS[op])
    assert op in {n.op for n in graph.nodes}
    _, da, db = run(graph, [A, B])
    np.testing.assert_allclose(da, differences(graph, 0), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(db, differences(graph, 1), rtol=1e-6, atol=1e-8)


def test_operators_without_a_gradient() -> None:
    assert "bitcast" not in differentiable()
    with pytest.raises(UnsupportedError, match="the gradient of bitcast: bits that are read"):
        graph_of(lambda a, b: (a * b).apply("bitcast", attrs=CastAttrs(F64)))


def test_complex_numbers_are_refused() -> None:
    g = GraphBuilder("g")
    x = g.input("x", tensor(C64, 4))
    y = g.add("identity", x)
    dy: Value = TracedValue(g, g.input("d", tensor(C64, 4)))
    with pytest.raises(UnsupportedError, match="of complex numbers"):
        pullback(g, g.nodes, (x,), {y: dy})


def test_steps_and_integers_have_none() -> None:
    g = GraphBuilder("g")
    x = g.input("x", tensor(F64, 4))
    y = g.add("cast", g.add("cast", x, attrs=CastAttrs(I64)), attrs=CastAttrs(F64))
    assert gradients(g, nodes_between(g.nodes, (x,), y), (x,), y).keys() == {y}
    assert gradients(g, nodes_between(g.nodes, (x,), x), (x,), x).keys() == {x}


def test_parts_of_several_results() -> None:
    """An operator that is differentiated as its parts, both results of which are used."""
    g = GraphBuilder("g")
    x = g.input("x", tensor(F64, 2, 3))
    attrs = TopKAttrs(const(2), 1)
    values, places = g.add_many("topk", x, attrs=attrs, names=("y", "i"))
    taken = g.add("gather_elements", x, places, attrs=GatherAttrs(1))
    y = g.add("mul", values, taken)
    found = gradients(g, nodes_between(g.nodes, (x,), y), (x,), y)
    given = np.array([[1.0, 3.0, 2.0], [5.0, -1.0, 4.0]])
    (dx,) = run_graph(g.graph(found[x]), {"x": given}).values()
    np.testing.assert_array_equal(dx, [[0, 6, 4], [10, 0, 8]])


def test_an_operand_that_is_given_twice() -> None:
    g = GraphBuilder("g")
    x = g.input("x", tensor(F64, 2, 3))
    y = g.add("einsum", x, x, attrs=EinsumAttrs("ij,kj->ik"))
    found = gradients(g, nodes_between(g.nodes, (x,), y), (x,), y)
    given = np.arange(6.0).reshape(2, 3)
    (dx,) = run_graph(g.graph(found[x]), {"x": given}).values()
    np.testing.assert_allclose(dx, 2 * np.broadcast_to(given.sum(0), (2, 3)))


def test_nodes_between() -> None:
    g = GraphBuilder("g")
    x, z = g.input("x", tensor(F32, 4)), g.input("z", tensor(F32, 4))
    beside = g.add("exp", z)
    y = g.add("add", g.add("exp", x), beside)
    g.add("neg", y)
    assert [n.op for n in nodes_between(g.nodes, (x,), y)] == ["exp", "add"]
