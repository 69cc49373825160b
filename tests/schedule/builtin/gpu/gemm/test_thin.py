from __future__ import annotations

import pytest

from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense, on_threads, the_kernel, tiles
from tests.schedule.builtin.gpu.scheduled import H200, with_sms
from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.ir.loop.walk import loops
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.gpu.gemm.thin import ThinPlan, plan_thin
from tilewright.schedule.builtin.inlining import inline_copies
from tilewright.schedule.schedule import Schedule


def planned(m: int, n: int, k: int, dtype: DType = F32, order: str = "nt") -> ThinPlan | None:
    ((func, _),) = sources(dense(m, n, k, dtype, order))
    sch = Schedule(func)
    inline_copies(sch, block_graph(func), frozenset())
    graph = block_graph(sch.func)
    product = next(b for b in graph.blocks if any(it.kind == "R" for it in b.iters))
    return plan_thin(product, graph.buffers, H200)


@for_each(
    ("case", "plan"),
    [
        ((8, 6504, 4110), ThinPlan(4, 1, 8)),
        ((8, 6504, 4112), ThinPlan(4, 4, 2)),
        ((3, 6721, 933, BF16), ThinPlan(1, 1, 16)),
        ((2, 1818, 5896, BF16), ThinPlan(2, 8, 4)),
        ((9, 6504, 4110), None),  # rows enough for a tile
        ((4, 6504, 4112, F16), None),
        ((8, 64, 4110), None),  # too few columns for all SMs
        ((8, 6504, 100), None),
        ((8, 6504, 4110, F32, "nn"), None),
    ],
)
def test_plans(case: tuple, plan: ThinPlan | None) -> None:
    assert planned(*case) == plan


@pytest.mark.parametrize(
    ("sizes", "dtype"),
    [((3, 24, 300), F32), ((2, 20, 264), F16), ((3, 22, 261), BF16), ((8, 16, 256), F32)],
)
def test_emitted_code_by_threads_of_this_machine(sizes: tuple[int, int, int], dtype: DType) -> None:
    func, scheduled = the_kernel(dense(*sizes, dtype, "nt"), with_sms(1))
    assert not tiles(scheduled)
    assert [f.kind for f in loops(scheduled.body)].count("allreduce") == 1
    on_threads(func, scheduled, {}, target=with_sms(1))
