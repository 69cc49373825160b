from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS, Dim, _Maker
from tests.for_each import for_each
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F16
from tilewright.schedule.analysis.blocks import BlockGraph, block_graph
from tilewright.schedule.builtin.gpu.rowwise_plan import (
    RowwisePlan,
    plan_rows,
    register_arrays,
    wide_blocks,
)
from tilewright.target.registry import resolve_gpu

H200 = resolve_gpu("cuda")


def _facts(name: str, *sizes: Dim) -> BlockGraph:
    ((func, _),) = sources(KERNELS[name](*sizes))
    return block_graph(func)


@for_each(
    ("rows", "length", "plan"),
    [
        (8192, 8192, RowwisePlan(1, 256, 4, True)),
        (196608, 128, RowwisePlan(16, 8, 4, True)),
        (196608, 64, RowwisePlan(16, 8, 4, True)),
        (8192, 1000, RowwisePlan(1, 64, 4, True)),
        (12, 768, RowwisePlan(1, 256, 4, True)),
        (4099, 130, RowwisePlan(4, 32, 2, True)),
        (8192, 200000, RowwisePlan(1, 256, 4, False, 8)),
        (8192, 200001, RowwisePlan(1, 256, 1, False, 8)),
    ],
)
def test_rows_of_every_length(rows: int, length: int, plan: RowwisePlan) -> None:
    assert plan_rows(_facts("softmax", rows, length, 1), 1, H200) == plan


def test_a_warp_has_rows_of_few_pieces_or_those_it_goes_through_once() -> None:
    b = _Maker("halves")
    ((func, _),) = sources(b.g.graph(b.add("softmax", b.input(4096, 768, dtype=F16))))
    assert plan_rows(block_graph(func), 1, H200) == RowwisePlan(4, 32, 8, True)
    assert plan_rows(_facts("sum_rows", 8192, 1, 1000), 1, H200) == RowwisePlan(4, 32, 4, True)


def test_short_odd_rows_share_a_block() -> None:
    """Though a cache line has more elements than a warp has threads."""
    b = _Maker("odd")
    ((func, _),) = sources(b.g.graph(b.add("softmax", b.input(48888, 89, dtype=F16))))
    assert plan_rows(block_graph(func), 1, H200) == RowwisePlan(4, 32, 1, True)


def test_rows_of_unknown_length_are_gone_through_again() -> None:
    assert not plan_rows(_facts("softmax", Var("M"), Var("N"), 1), 1, H200).in_registers


def test_what_stays_in_registers() -> None:
    structure = _facts("layer_norm", 64, 96, 1)
    assert register_arrays(structure, 1) == ["add"]
    assert [b.name for b in wide_blocks(structure, 1)] == [
        "add",
        "layer_norm.total",
        "layer_norm.squares",
        "layer_norm",
    ]
