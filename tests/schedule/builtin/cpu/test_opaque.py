from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.builtin.scheduled import check, kinds, scheduled
from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32, I64
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder


def _cumsum(*shape: object, axis: int) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, *shape))
    return g.graph(g.add("cumsum", x, attrs=make_attrs("cumsum", {"axis": axis})))


def _topk(*shape: object) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, *shape))
    return g.graph(*g.add_many("topk", x, attrs=make_attrs("topk", {"k": const(2)})))


def _scatter(rows: object, columns: object) -> Graph:
    g = GraphBuilder("f")
    x, u = (g.input(n, tensor(F32, rows, columns)) for n in "xu")
    i = g.input("i", tensor(I64, rows, columns))
    attrs = make_attrs("scatter_elements", {"axis": 1, "reduction": "add"})
    return g.graph(g.add("scatter_elements", x, i, u, attrs=attrs))


@for_each("axis", [0, 1, 2])
def test_scans(axis: int) -> None:
    assert check(_cumsum(3, 4, 5, axis=axis), {}) == ["opaque"]
    check(_cumsum(3, Var("N"), 5, axis=axis), {"N": 0})


def test_sorting_and_scattering() -> None:
    assert check(_topk(4, 6), {}) == ["opaque"]
    assert check(_scatter(3, 5), {}) == ["opaque"]
    check(_scatter(Var("M"), Var("N")), {"M": 2, "N": 4})


def test_many_rows_run_in_parallel() -> None:
    (large,) = scheduled(_cumsum(256, 16, 256, axis=2))
    assert len(kinds(large.func)["parallel"]) == 1
    (small,) = scheduled(_cumsum(2, 4, axis=1))
    assert "parallel" not in kinds(small.func)
    (single,) = scheduled(_cumsum(100_000, axis=0))
    assert "parallel" not in kinds(single.func)


def test_the_copy_of_a_scatter_gets_vectors() -> None:
    (result,) = scheduled(_scatter(256, 256))
    found = kinds(result.func)
    assert len(found["parallel"]) == 2
    assert len(found["vectorize"]) == 1
