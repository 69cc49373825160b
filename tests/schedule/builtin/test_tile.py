from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.scheduled import check, kinds, scheduled, sources
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.build import GraphBuilder
from tilewright.schedule.builtin.structure import facts_of, reductions
from tilewright.schedule.builtin.tile import tile_roles

NAMES = ("matmul", "dense", "batched_matmul", "pointwise_conv", "max_columns", "mean_middle")


@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 7, 3), (13, 33, 2), (2, 16, 9)])
@pytest.mark.parametrize("name", [*NAMES, "depthwise", "max_pool"])
def test_meaning_at_odd_sizes(name: str, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    check(KERNELS[name](min(m, 3) if "pool" in name or "depth" in name else m, n, k), {})


def test_convolution() -> None:
    check(KERNELS["conv"](3, 3, 5), {})


@pytest.mark.parametrize("name", ["matmul", "batched_matmul", "max_columns"])
def test_symbolic_and_empty(name: str) -> None:
    for sizes in ((5, 7, 3), (1, 17, 1), (0, 4, 2), (2, 0, 2), (2, 3, 0)):
        check(KERNELS[name](*map(Var, "MNK")), dict(zip("MNK", sizes, strict=True)))


def test_sums_stay_in_registers_and_constants_are_packed() -> None:
    (result,) = scheduled(KERNELS["dense"](64, 64, 64))
    assert result.rule == "tile"
    assert "@register" in print_func(result.func)
    assert len(result.func.layouts) == 1
    assert kinds(result.func)["unroll"]
    (dynamic,) = scheduled(KERNELS["batched_matmul"](20, 30, 40))
    assert dynamic.func.layouts == ()
    assert "cache_read" in str(dynamic.trace)


def test_roles() -> None:
    ((func, constants),) = sources(KERNELS["dense"](8, 12, 16))
    facts = facts_of(func)
    block = next(b for b in facts.blocks if reductions(b))
    roles = tile_roles(block, facts, constants)
    assert roles is not None
    assert roles.panel is not None
    assert roles.panel.buffer in constants
    assert roles.row is not None
    assert str(roles.row.extent) == "8"
    assert str(roles.column.extent) == "12"
    assert roles.batch == ()
    ((func, constants),) = sources(KERNELS["sum_rows"](8, 12, 16))
    facts = facts_of(func)
    assert tile_roles(facts.blocks[0], facts, constants) is None


def _sum_over_rows(batch: object) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, batch, 9, 32))
    return g.graph(g.add("reduce_sum", x, attrs=make_attrs("reduce_sum", {"axes": (1,)})))


def test_rows_of_unknown_number_that_share_nothing_are_no_rows_of_a_tile() -> None:
    for batch, rows in ((Var("N"), False), (8, True)):
        ((func, constants),) = sources(_sum_over_rows(batch))
        facts = facts_of(func)
        block = next(b for b in facts.blocks if reductions(b))
        roles = tile_roles(block, facts, constants)
        assert roles is not None
        assert (roles.row is not None) == rows
    assert check(_sum_over_rows(Var("N")), {"N": 3}) == ["tile"]
