from __future__ import annotations

from tilewright.arith.expr import Expr, Var, as_int
from tilewright.core.dtypes import F32, I64
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.lower.kernel_cost import param_bytes
from tilewright.lower.lower_kernel import lower_group
from tilewright.ops.graph_builder import GraphBuilder


def _bytes(graph: Graph) -> list[Expr]:
    return list(param_bytes(lower_group(graph).func))


def _numbers(graph: Graph) -> list[int | None]:
    return list(map(as_int, _bytes(graph)))


def _product(rows: Expr | int) -> Graph:
    g = GraphBuilder("f")
    x, y = g.input("x", tensor(F32, rows, 16)), g.input("y", tensor(F32, 16, 8))
    return g.graph(g.add("matmul", x, y))


def test_a_product_moves_each_matrix_once() -> None:
    assert _numbers(_product(4)) == [4 * 4 * 16, 4 * 16 * 8, 4 * 4 * 8]


def test_a_lookup_reads_some_rows_of_a_table() -> None:
    g = GraphBuilder("f")
    table, rows = g.input("table", tensor(F32, 1000, 8)), g.input("rows", tensor(I64, 3))
    graph = g.graph(g.add("gather", table, rows))
    assert _numbers(graph) == [4 * 3 * 8, 8 * 3, 4 * 3 * 8]


def test_symbolic_sizes_give_formulas() -> None:
    first, weights, last = _bytes(_product(Var("M")))
    assert as_int(weights) == 4 * 16 * 8
    assert "M" in str(first)
    assert "M" in str(last)
