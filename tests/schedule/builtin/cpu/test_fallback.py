from __future__ import annotations

import pytest

from tests.schedule.builtin.scheduled import check, kinds, scheduled
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.target.registry import CPUS


def _with_stats(rows: object, columns: object) -> Graph:
    """Three results: no stage is last."""
    g = GraphBuilder("f")
    attrs = make_attrs("layer_norm", {"axis": -1, "stats": True})
    return g.graph(*g.add_many("layer_norm", g.input("x", tensor(F32, rows, columns)), attrs=attrs))


def _column_norm(rows: object, columns: object) -> Graph:
    """A softmax down the columns."""
    g = GraphBuilder("f")
    attrs = make_attrs("softmax", {"axis": 0})
    return g.graph(g.add("softmax", g.input("x", tensor(F32, rows, columns)), attrs=attrs))


@pytest.mark.parametrize("target", ["aarch64", "x86-64-v4"])
@pytest.mark.parametrize("sizes", [(1, 1), (3, 5), (7, 64), (20, 70), (Var("M"), Var("N"))])
def test_the_meaning_is_kept(target: str, sizes: tuple[object, object]) -> None:
    for graph in (_with_stats(*sizes), _column_norm(*sizes)):
        check(graph, {"M": 6, "N": 37}, CPUS[target])


def test_rows_and_columns_are_vectors() -> None:
    for graph, sums in ((_with_stats(128, 512), 2), (_column_norm(128, 512), 2)):
        (result,) = scheduled(graph)
        assert result.rule == "fallback"
        found = kinds(result.func)
        assert len(found["parallel"]) >= sums
        assert len(found["vectorize"]) > 2 * sums
