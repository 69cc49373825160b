from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_CPU
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32, I32
from tilewright.driver.compile import compile
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.elementwise.arithmetic import CastAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.algebra.one_hot_matmul_to_gather import one_hot_matmul_to_gather

ROWS = 7


def _one_hot(rows: np.ndarray, numbers: np.ndarray | None = None, swapped: bool = False) -> Graph:
    g = GraphBuilder("lookup")
    i = g.input("i", tensor(I32, Var("N"), 5, 1))
    counted = np.arange(ROWS, dtype=np.int32).reshape(1, 1, -1) if numbers is None else numbers
    places = g.constant(counted, "numbers")
    same = g.add("equal", places, i) if swapped else g.add("equal", i, places)
    hot = g.add("cast", same, attrs=CastAttrs(F32))
    return g.graph(g.add("matmul", hot, g.constant(rows, "w")))


@for_each("swapped", [False, True])
def test_rows_are_looked_up(swapped: bool) -> None:
    rows = np.random.default_rng(0).standard_normal((ROWS, 3), dtype=np.float32)
    rows[2, 1] = -0.0
    graph = _one_hot(rows, swapped=swapped)
    after = one_hot_matmul_to_gather(graph, ON_CPU)
    verify_graph(after)
    check_types(after)
    assert "gather" in {n.op for n in after.nodes}
    assert "matmul" not in {n.op for n in after.nodes}
    i = np.array([0, 1, 6, 7, -1, 2, 2, 3, 1000, -7], np.int32).reshape(2, 5, 1)
    expected = run_graph(graph, {"i": i})[graph.outputs[0]]
    for found in (
        run_graph(after, {"i": i})[after.outputs[0]],
        compile(graph, cache=False).run({"i": i})[graph.outputs[0]],
    ):
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))


def test_what_is_not_finite_stays() -> None:
    rows = np.ones((ROWS, 3), np.float32)
    rows[4, 0] = np.inf
    graph = _one_hot(rows)
    assert one_hot_matmul_to_gather(graph, ON_CPU) is graph


def test_other_numbers_stay() -> None:
    numbers = np.arange(1, ROWS + 1, dtype=np.int32).reshape(1, 1, -1)
    graph = _one_hot(np.ones((ROWS, 3), np.float32), numbers)
    assert one_hot_matmul_to_gather(graph, ON_CPU) is graph
