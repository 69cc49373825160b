from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import check, kinds, scheduled, sources
from tilewright.arith.expr import Var, as_int
from tilewright.core.dtypes import F32
from tilewright.ir.loop.walk import loops
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.cpu.rowwise import row_axes
from tilewright.target.registry import CPUS

NAMES = ("softmax", "layer_norm", "sum_rows", "sum_all")


@for_each("sizes", [(1, 1, 1), (3, 19, 45), (2, 64, 50)])
@for_each("name", NAMES)
def test_meaning(name: str, sizes: tuple[int, int, int]) -> None:
    assert "rowwise" in check(KERNELS[name](*sizes), {}) or 1 in sizes


@pytest.mark.parametrize("name", NAMES)
def test_symbolic_and_empty_rows(name: str) -> None:
    for sizes in ((2, 9, 5), (1, 1, 1), (0, 3, 3), (3, 0, 2), (2, 3, 0)):
        check(KERNELS[name](*map(Var, "MNK")), dict(zip("MNK", sizes, strict=True)))


def test_rows_of_several_symbolic_axes_are_written_in_place() -> None:
    """A mask that is equal along one axis keeps the axes of rows apart."""
    b, h, n, width = Var("B"), Var("H"), Var("N"), 300
    g = GraphBuilder("g")
    x, mask = (
        g.input("x", tensor(F32, b, h, n, width)),
        g.input("mask", tensor(F32, b, 1, 1, width)),
    )
    graph = g.graph(
        g.add("softmax", g.add("add", x, mask), attrs=make_attrs("softmax", {"axis": 3}))
    )
    (result,) = scheduled(graph)
    assert "reuse_buffer" in str(result.trace)
    for sizes in ((2, 3, 2), (1, 1, 1), (0, 2, 2)):
        check(graph, dict(zip("BHN", sizes, strict=True)))


def test_rows_run_in_parallel_and_lanes_hold_partial_sums() -> None:
    (result,) = scheduled(KERNELS["softmax"](512, 512, 1))
    assert result.rule == "rowwise"
    assert len(kinds(result.func)["parallel"]) == 1
    assert len(kinds(result.func)["vectorize"]) >= 3
    assert "rfactor" in str(result.trace)


def test_which_axes_number_rows() -> None:
    ((func, _),) = sources(KERNELS["softmax"](6, 7, 1))
    assert row_axes(block_graph(func)) == 1
    ((func, _),) = sources(KERNELS["max_columns"](6, 7, 5))
    assert row_axes(block_graph(func)) is None
    ((func, _),) = sources(KERNELS["transposes"](6, 7, 5))[:1]
    assert row_axes(block_graph(func)) is None


def test_another_axis_that_is_as_long_is_no_row() -> None:
    """Means over the first and the last axis, which the elements of all rows read."""
    g = GraphBuilder("g")
    x = g.input("x", tensor(F32, *[Var("N")] * 3))
    attrs = make_attrs("mean_variance_norm", {"axes": (0, 2)})
    graph = g.graph(g.add("mean_variance_norm", x, attrs=attrs))
    ((func, _),) = sources(graph)
    assert row_axes(block_graph(func)) is None
    for size in (0, 1, 5):
        check(graph, {"N": size})


@pytest.mark.parametrize(("width", "lanes"), [(4, 0), (5, 8), (8, 8), (13, 16), (15, 16)])
@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_a_short_row_is_one_vector(name: str, width: int, lanes: int) -> None:
    graph, target = KERNELS[name](6, width, 1), CPUS["x86-64-v4"]
    check(graph, {}, target)
    (result,) = scheduled(graph, target)
    vectors = [as_int(f.extent) for f in loops(result.func.body) if f.kind == "vectorize"]
    assert max(vectors, default=0) == lanes
