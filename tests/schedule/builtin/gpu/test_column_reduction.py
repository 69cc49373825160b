from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS, _Maker
from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.gpu.two_launches import check_two_launches
from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import BF16, F32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.gpu.column_reduction import ColumnPlan, plan_columns


def _vector(n: int, k: int, dtype: DType) -> Graph:
    """A row by a matrix, and what follows."""
    b = _Maker("vector")
    y = b.add("matmul", b.input(1, k, dtype=dtype), b.input(k, n, dtype=dtype))
    return b.g.graph(b.add("relu", y))


@for_each(
    ("graph", "plan"),
    [
        (KERNELS["max_columns"](8192, 64, 128), ColumnPlan(16, 4, 16, 8, 8)),
        (KERNELS["max_columns"](96, 24, 20), None),
        (_vector(4096, 4096, BF16), ColumnPlan(16, 8, 16, 8, 16)),
        (_vector(1000, 2048, BF16), None),
    ],
)
def test_plan(graph: Graph, plan: ColumnPlan | None) -> None:
    ((func, _),) = sources(graph)
    structure = block_graph(func)
    (block,) = (b for b in structure.blocks if reductions(b))
    assert plan_columns(block, structure.buffers, H200) == plan


@pytest.mark.parametrize(
    "graph",
    [KERNELS["max_columns"](96, 4, 32), KERNELS["mean_middle"](3, 128, 32), _vector(64, 192, F32)],
)
def test_meaning(graph: Graph) -> None:
    check_two_launches(graph)
