from __future__ import annotations

from tests.codegen.gpu.test_nvptx import check_on_threads
from tests.differential.kernel_graphs import KERNELS, _Maker
from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200, check
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
        (KERNELS["max_columns"](96, 24, 20), ColumnPlan(4, 4, 16, 6, 1)),  # few blocks: narrow ones
        (KERNELS["max_columns"](104 * 352, 1, 40), ColumnPlan(10, 4, 16, 8, 143)),
        (_vector(4096, 4096, BF16), ColumnPlan(16, 8, 16, 8, 16)),
        (_vector(1000, 2048, BF16), ColumnPlan(4, 8, 64, 8, 2)),
        (KERNELS["mean_middle"](150, 458, 6), ColumnPlan(3, 2, 64, 8, 1)),
        (KERNELS["mean_middle"](56, 40, 111), ColumnPlan(56, 1, 4, 5, 1)),
        (KERNELS["mean_middle"](161, 7, 1320), None),  # a thread for each column keeps memory busy
        (KERNELS["max_columns"](85, 872, 700), None),
        (KERNELS["mean_middle"](3, 7, 40), None),  # few terms
        (KERNELS["average_pool"](16, 15, 0), None),
        (KERNELS["sum_rows"](64, 64, 64), None),
    ],
)
def test_plan(graph: Graph, plan: ColumnPlan | None) -> None:
    ((func, _),) = sources(graph)
    structure = block_graph(func)
    (block,) = (b for b in structure.blocks if reductions(b))
    assert plan_columns(block, structure.buffers, H200) == plan


@for_each("sizes", [(3, 50, 8), (5, 49, 7), (2, 131, 33), (3, 67, 129), (2, 40, 2), (2, 23, 300)])
def test_meaning(sizes: tuple[int, int, int]) -> None:
    rows = (sizes[1], sizes[0], sizes[2])
    for graph in (KERNELS["mean_middle"](*sizes), KERNELS["max_columns"](*rows)):
        assert check(graph, {}) == ["columns"]


@for_each("sizes", [(3, 50, 8), (2, 131, 33)])
def test_emitted_code_by_threads_of_this_machine(sizes: tuple[int, int, int]) -> None:
    for func, constants in sources(KERNELS["mean_middle"](*sizes)):
        check_on_threads(func, constants, {})


@for_each("sizes", [(2, 70, 9), (1, 130, 33)])
def test_several_reductions_down_columns(sizes: tuple[int, int, int]) -> None:
    b = _Maker("columns")
    assert check(b.g.graph(b.add("softmax", b.input(*sizes), axis=1)), {}) == ["fallback"]


def test_in_parts() -> None:
    check_two_launches(KERNELS["max_columns"](4096, 4, 16))
    check_two_launches(_vector(64, 2048, F32))
