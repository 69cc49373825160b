from __future__ import annotations

from dataclasses import replace

import pytest

from tests.codegen.gpu.test_nvptx import check_on_threads
from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.gpu.scheduled import H200, check, scheduled
from tests.schedule.builtin.scheduled import kinds, sources
from tilewright.arith.expr import as_int
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.walk import loops
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.builtin.gpu import injective
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu


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


def test_a_thread_has_several_elements_where_they_are_no_vector() -> None:
    ((func, _),) = sources(KERNELS["gathered"](300, 151, 4000))
    result = schedule_for_gpu(func, frozenset(), H200)
    unrolled = [f for f in loops(result.func.body) if f.kind == "unroll"]
    assert [as_int(f.extent) for f in unrolled] == [4]
    few = schedule_for_gpu(sources(KERNELS["gathered"](30, 15, 40))[0][0], frozenset(), H200)
    assert not any(f.kind == "unroll" for f in loops(few.func.body))


def test_several_elements_of_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injective, "OCCUPANCY", replace(injective.OCCUPANCY, injective_threads=0))
    for graph in (KERNELS["gathered"](30, 7, 171), _add(23, 57)):
        assert check(graph, {}) == ["injective"]
        for func, constants in sources(graph):
            check_on_threads(func, constants, {})
