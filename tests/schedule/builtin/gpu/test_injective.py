from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.gpu.scheduled import check, scheduled
from tests.schedule.builtin.scheduled import kinds
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder


def _add(*shape: int) -> Graph:
    g = GraphBuilder("sum")
    x, y = (g.input(name, tensor(F32, *shape)) for name in "xy")
    return g.graph(g.add("add", x, y))


def test_meaning() -> None:
    assert set(check(KERNELS["rearranged"](5, 6, 7), {})) == {"injective"}
    assert check(_add(3, 7), {}) == ["injective"]


def test_large_arrays_are_moved_in_wide_accesses() -> None:
    (large,), (small,), (odd,) = (
        scheduled(_add(n, m)) for n, m in ((2048, 512), (8, 8), (2048, 511))
    )
    assert "vectorize" in kinds(large.func)
    assert "vectorize" not in kinds(small.func)
    assert all(len(kinds(r.func)["grid"]) == 1 for r in (large, small, odd))


def test_short_rows_are_written_at_once() -> None:
    g = GraphBuilder("turned")
    x = g.input("x", tensor(F32, 2, 3, 70))
    turned = g.add("transpose", x, attrs=make_attrs("transpose", {"perm": (0, 2, 1)}))
    pads = {"before": (0, 0, 0), "after": (0, 0, 1)}
    graph = g.graph(g.add("pad", turned, attrs=make_attrs("pad", pads)))
    assert check(graph, {}) == ["injective"]
    (result,) = scheduled(graph)
    assert "vectorize" in kinds(result.func)
