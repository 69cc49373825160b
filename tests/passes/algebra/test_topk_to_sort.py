from __future__ import annotations

import numpy as np
import pytest

from tests.differential.native import check_native
from tests.passes.contexts import ON_CPU
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import F32, I64, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.tensor.topk import TopKAttrs
from tilewright.passes.algebra.topk_to_sort import topk_to_sort

RNG = np.random.default_rng(3)


def graph_of(
    shape: tuple[int | Expr, ...], k: int | Expr, axis: int, largest: bool, dtype: DType = F32
) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, *shape))
    wanted = k if isinstance(k, Expr) else const(k)
    return g.graph(*g.add_many("topk", x, attrs=TopKAttrs(wanted, axis, largest)))


def is_sorted(graph: Graph) -> bool:
    return "argsort_rows" in topk_to_sort(graph, ON_CPU).ops


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    ("shape", "k", "axis"),
    [((3, 60), 60, 1), ((60, 3), 60, 0), ((2, 70, 3), 65, 1), ((64,), 64, 0)],
)
def test_the_same_elements_in_the_same_order(
    shape: tuple[int, ...], k: int, axis: int, largest: bool
) -> None:
    graph = graph_of(shape, k, axis, largest)
    assert is_sorted(graph)
    x = RNG.integers(0, 9, shape).astype(np.float32)  # many are equal
    x.ravel()[[3, 30]] = np.nan
    expected, found = run_graph(graph, {"x": x}), run_graph(topk_to_sort(graph, ON_CPU), {"x": x})
    for old, new in zip(graph.outputs, topk_to_sort(graph, ON_CPU).outputs, strict=True):
        np.testing.assert_array_equal(found[new], expected[old])


def test_compiled() -> None:
    x = RNG.integers(-50, 50, (3, 90))
    check_native(graph_of((3, 90), 90, 1, True, I64), {"x": x})


def test_rows_of_unknown_length() -> None:
    n = Var("N")
    graph = graph_of((2, n), n, 1, True)
    assert is_sorted(graph)
    check_native(graph, {"x": RNG.standard_normal((2, 50)).astype(np.float32)})


def test_a_few_of_many_are_kept_in_a_list() -> None:
    assert not is_sorted(graph_of((2, 60), 5, 1, True))
    assert not is_sorted(graph_of((200_000,), 1000, 0, True))
    assert not is_sorted(graph_of((Var("N"),), 50, 0, True))
    assert not is_sorted(graph_of((Var("N"),), Var("K"), 0, True))
    assert not is_sorted(graph_of((1,), 1, 0, True))
    assert not is_sorted(graph_of((0,), 0, 0, True))
