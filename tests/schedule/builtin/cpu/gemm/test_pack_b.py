"""Few rows read a computed operand in place; others pack it, each thread its own panels."""

from __future__ import annotations

import re

import pytest

from tests.for_each import for_each
from tests.schedule.builtin.scheduled import AARCH64, check, kinds, scheduled
from tilewright.arith.expr import TRUE
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import blocks
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.target.cpu import UNASKED_STACK_BYTES
from tilewright.target.registry import CPUS

TARGETS = ("aarch64", "x86-64-v3", "x86-64-v4")


def _product(m: int, n: int, k: int, batch: tuple[int, ...] = ()) -> Graph:
    g = GraphBuilder("f")
    a, b = g.input("a", tensor(F32, *batch, m, k)), g.input("b", tensor(F32, *batch, k, n))
    return g.graph(g.add("matmul", a, b))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("sizes", [(1, 70, 9), (3, 129, 5), (2, 16, 3), (7, 5, 40)])
def test_few_rows_keep_their_meaning(target: str, sizes: tuple[int, int, int]) -> None:
    for batch in ((), (3,)):
        check(_product(*sizes, batch), {}, CPUS[target])


@pytest.mark.parametrize("target", TARGETS)
def test_many_rows_keep_their_meaning(target: str) -> None:
    check(_product(40, 150, 9), {}, CPUS[target])


def test_one_tile_of_rows_reads_in_place() -> None:
    for rows, packed in ((1, False), (4, False), (200, True)):
        (result,) = scheduled(_product(rows, 1500, 600), CPUS["x86-64-v4"])
        assert ("cache_read" in str(result.trace)) == packed


def test_few_rows_prefetch_what_is_not_in_l2() -> None:
    for columns, ahead in ((1500, True), (60, False)):
        (result,) = scheduled(_product(4, columns, 600), CPUS["x86-64-v4"])
        assert ("prefetch" in str(result.trace)) == ahead


def test_nothing_past_the_last_column_is_read_in_place() -> None:
    for batch in ((), (3,)):
        (result,) = scheduled(_product(5, 1501, 600, batch), CPUS["x86-64-v4"])
        assert "cache_read" not in str(result.trace)
        assert "min(" not in print_func(result.func)
        # Guarded accumulators would not stay in registers.
        guarded = {b.name for b in blocks(result.func.body) if b.predicate is not TRUE}
        assert guarded == {"matmul.wb"}


def test_rows_of_one_panel_follow_each_other() -> None:
    """They are one stream, which is faster in place than packed."""
    (result,) = scheduled(_product(5, 25, 144, (64,)), CPUS["x86-64-v4"])
    assert "cache_read" not in str(result.trace)


@for_each("columns", [9, 16, 27, 50])
def test_what_l1_holds_is_read_in_place(columns: int) -> None:
    """Where masks cost nothing; elsewhere the last vectors of its rows would."""
    product = _product(200, columns, 60, (9,))
    (result,) = scheduled(product, CPUS["x86-64-v4"])
    assert "cache_read" not in str(result.trace)
    (result,) = scheduled(product, CPUS["neoverse-n1"])
    assert ("cache_read" in str(result.trace)) == (columns % 4 != 0)


def test_panels_fit_the_stack_of_a_thread() -> None:
    (result,) = scheduled(_product(40, 688, 1176), CPUS["x86-64-v4"])
    found = re.search(r"alloc x1.global: f32\[(\d+), 1176, (\d+)\]", print_func(result.func))
    assert found is not None
    assert 1176 * int(found[2]) * 4 <= UNASKED_STACK_BYTES


def test_threads_pack_the_panels_that_they_use() -> None:
    (result,) = scheduled(_product(100, 40 * AARCH64.cores * 16, 300))
    assert len(kinds(result.func)["parallel"]) == 1
    assert "\ncompute_at(" in str(result.trace)


def test_one_panel_is_packed_before_its_rows_are_shared_out() -> None:
    (result,) = scheduled(_product(2000, 9, 300))
    assert "\ncompute_at(" not in str(result.trace)
    assert "cache_read" in str(result.trace)
