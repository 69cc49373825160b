from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS, _Maker
from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.gpu.two_launches import check_two_launches
from tests.schedule.builtin.scheduled import sources
from tilewright.ir.graph.nodes import Graph
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.gpu import split_reduction
from tilewright.schedule.builtin.gpu.block_reduction import BlockReductionPlan, plan_block_reduction


@for_each(
    ("name", "sizes", "plan"),
    [
        ("sum_all", (1, 8192, 8192), BlockReductionPlan(256, 4, 8)),
        ("sum_all", (1, 3, 640), BlockReductionPlan(32, 4, 1)),
        ("sum_all", (1, 3, 1000), None),
        ("sum_rows", (1, 3, 3072), BlockReductionPlan(256, 4, 1)),
        ("max_columns", (96, 4, 32), None),
    ],
)
def test_plan(name: str, sizes: tuple[int, int, int], plan: BlockReductionPlan | None) -> None:
    ((func, _),) = sources(KERNELS[name](*sizes))
    (block,) = (b for b in block_graph(func).blocks if reductions(b))
    assert plan_block_reduction(block, H200) == plan


def _distance() -> Graph:
    b = _Maker("distance")
    difference = b.add("sub", b.input(16, 2, 128), b.input(128))
    square = b.add("mul", difference, difference)
    return b.g.graph(b.add("reduce_mean", square, axes=(0, 1, 2), keepdims=False))


@pytest.mark.parametrize(
    "graph", [KERNELS["sum_all"](32, 2, 128), KERNELS["sum_all"](1, 1, 4096), _distance()]
)
def test_meaning(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(split_reduction, "BLOCK_TERMS", 256)
    check_two_launches(graph)
