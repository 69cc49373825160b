from __future__ import annotations

from dataclasses import replace

import pytest

from tests.schedule.builtin.scheduled import check, kinds, scheduled, sources
from tilewright.arith.expr import Expr, Var, as_int
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.walk import loops
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.cpu.column_reduction import is_column_reduction
from tilewright.target.registry import CPUS


def _reduced(op: str, axes: tuple[int, ...], *shape: Expr | int) -> Graph:
    g = GraphBuilder("f")
    attrs = make_attrs(op, {"axes": axes, "keepdims": False})
    return g.graph(g.add(op, g.input("x", tensor(F32, *shape)), attrs=attrs))


TARGETS = ("neoverse-n1", "x86-64-v3", "x86-64-v4")


# Every number of rows with every number of columns, and each of both with every target.
@pytest.mark.parametrize(
    ("rows", "columns", "target"),
    [
        (rows, columns, TARGETS[(i + j) % len(TARGETS)])
        for i, rows in enumerate([0, 1, 7, 8, 9, 67, 131])
        for j, columns in enumerate([1, 3, 16, 37])
    ],
)
def test_meaning(target: str, rows: int, columns: int) -> None:
    for op in ("reduce_sum", "reduce_max"):
        if rows or op == "reduce_sum":
            check(_reduced(op, (1,), 2, rows, columns), {}, CPUS[target])
            check(_reduced(op, (0,), rows, columns), {}, CPUS[target])


def test_symbolic_and_empty_sizes() -> None:
    for sizes in ((2, 19, 5), (1, 1, 1), (0, 3, 3), (3, 0, 2), (2, 3, 0), (1, 8, 40)):
        graph = _reduced("reduce_sum", (1,), *map(Var, "MKN"))
        check(graph, dict(zip("MKN", sizes, strict=True)))


def test_few_rows_are_read_side_by_side() -> None:
    (result,) = scheduled(_reduced("reduce_sum", (0,), 6, 1000))
    assert result.rule == "column_reduction"
    assert kinds(result.func)["unroll"] == ["reduce_sum.r0"]
    assert 'set_scope("reduce_sum.local", "register")' in str(result.trace)


def test_many_rows_are_read_a_few_at_a_time() -> None:
    (result,) = scheduled(_reduced("reduce_sum", (1,), 60, 61, 1000))
    assert 'split("reduce_sum.r0", [?, 8])' in str(result.trace)
    assert "rfactor" not in str(result.trace)


def test_without_enough_columns_the_rows_are_cut_into_parts() -> None:
    graph = _reduced("reduce_sum", (0,), 6400, 16)
    (result,) = scheduled(graph)
    assert "rfactor" in str(result.trace)
    check(graph, {})
    check(_reduced("reduce_sum", (0,), 4801, 17), {})


@pytest.mark.parametrize("cores", [1, 2, 4])
@pytest.mark.parametrize("columns", [32, 96])
def test_columns_are_summed_by_all_threads(columns: int, cores: int) -> None:
    graph = _reduced("reduce_sum", (1,), 1, 1024, columns)
    (result,) = scheduled(graph, replace(CPUS["x86-64-v4"], cores=cores))
    found = [as_int(f.extent) for f in loops(result.func.body) if f.kind == "parallel"]
    assert found == [cores]


def test_neighbours_must_be_read_by_neighbours() -> None:
    for axes, expected in (((0,), True), ((1,), True), ((2,), False), ((0, 1), True)):
        ((func, _),) = sources(_reduced("reduce_sum", axes, 4, 5, 6))
        graph = block_graph(func)
        assert is_column_reduction(graph.blocks[0], graph) == expected
