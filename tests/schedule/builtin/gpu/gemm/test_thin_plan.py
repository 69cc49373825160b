from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.gpu.gemm.thin_plan import (
    MAX_REGISTERS,
    ThinPlan,
    ThinProduct,
    plan_thin,
    plans,
    thin_product,
    thin_us,
)
from tilewright.schedule.builtin.inlining import inline_copies
from tilewright.schedule.schedule import Schedule


def planned(m: int, n: int, k: int, dtype: DType = F32, order: str = "nt") -> ThinPlan | None:
    ((func, _),) = sources(dense(m, n, k, dtype, order))
    sch = Schedule(func)
    inline_copies(sch, block_graph(func), frozenset())
    graph = block_graph(sch.func)
    block = next(b for b in graph.blocks if any(it.kind == "R" for it in b.iters))
    product = thin_product(block, graph.buffers)
    return None if product is None else plan_thin(product, H200)


@for_each(
    "case",
    [
        (9, 6504, 4110),  # rows enough for a tile
        (4, 6504, 4112, F16),  # tensor cores load whole vectors
        (4, 6504, 4112, F16, "nn"),
        (1, 6504, 4112),
        (8, 6504, 60),
    ],
)
def test_none(case: tuple) -> None:
    assert planned(*case) is None


@for_each(
    ("case", "along_k"),
    [
        ((8, 6504, 4110), True),
        ((2, 1818, 5896, BF16), True),
        ((4, 6504, 4111, F16), True),
        ((3, 4763, 931, BF16, "nn"), False),
        ((4, 7800, 4720, F32, "nn"), False),
    ],
)
def test_lanes_go_where_b_does(case: tuple, along_k: bool) -> None:
    plan = planned(*case)
    assert plan is not None
    assert plan.along_k == along_k


def test_few_columns_split_k() -> None:
    """Threads enough to keep all SMs busy, among the lanes of a block or over blocks."""
    for case in ((3, 667, 9851, F16, "nt"), (2, 96, 20000, F32, "nt"), (5, 32, 4961, F32, "nn")):
        plan = planned(*case)
        assert plan is not None
        _, n, k, *_ = case
        blocks = -(-n // plan.across) * -(-k // (plan.part or k))
        assert blocks * plan.threads >= 128 * H200.sm_count // 4


@for_each(
    "product",
    [ThinProduct(8, 4096, 4096, 4, True), ThinProduct(3, 4763, 931, 2, False)],
    ids=["k", "n"],
)
def test_plans_fit(product: ThinProduct) -> None:
    found = list(plans(product))
    assert len(found) == len({*found})
    bytes_of_b = product.n * product.k * product.bytes
    for plan in found:
        assert plan.threads <= H200.threads_per_block
        assert product.m * plan.across <= plan.threads, "the result is written in one go"
        assert thin_us(plan, product, H200) > bytes_of_b / H200.memory_rate * 1e6
    assert MAX_REGISTERS < H200.registers_per_thread
