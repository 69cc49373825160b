from __future__ import annotations

from pathlib import Path

import pytest

from tests.codegen.gpu.ptxas import assemble
from tests.codegen.gpu.test_nvptx import ptx
from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense, on_threads, the_kernel, tiles
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import buffers, loops
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.gpu.gemm.thin import schedule_thin
from tilewright.schedule.builtin.gpu.gemm.thin_plan import ThinPlan
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.builtin.inlining import inline_copies
from tilewright.schedule.schedule import Schedule


def planned(sizes: tuple[int, int, int], dtype: DType, plan: ThinPlan) -> tuple[Func, Func]:
    """A product and its epilogue before and after scheduling by a plan."""
    ((func, _),) = sources(dense(*sizes, dtype, "nt" if plan.along_k else "nn"))
    sch = Schedule(func)
    inline_copies(sch, block_graph(func), frozenset())
    product = next(b for b in block_graph(sch.func).blocks if any(i.kind == "R" for i in b.iters))
    schedule_thin(sch, product.name, plan, H200)
    return func, sch.func


@pytest.mark.parametrize(
    ("sizes", "dtype", "plan"),
    [
        ((3, 22, 261), BF16, ThinPlan(True, 2, 1, 16, 4, 4)),
        ((3, 22, 264), F16, ThinPlan(True, 2, 8, 32, 1, 1)),
        ((3, 22, 265), F32, ThinPlan(True, 1, 1, 64, 1, 1)),
        ((3, 40, 112), BF16, ThinPlan(True, 1, 8, 32, 2, 1)),  # one step
        ((8, 40, 93), F32, ThinPlan(True, 4, 1, 32, 1, 3)),
        ((4, 40, 96), F32, ThinPlan(True, 4, 4, 8, 4, 3)),
        ((3, 22, 261), BF16, ThinPlan(True, 2, 1, 16, 4, 4, 131)),  # two parts, the last shorter
        ((2, 24, 264), F16, ThinPlan(False, 1, 8, 4, 8, 2)),
        ((2, 22, 265), F32, ThinPlan(False, 1, 2, 16, 8, 1)),
        ((3, 23, 261), F16, ThinPlan(False, 1, 1, 8, 4, 2)),
        ((4, 64, 600), F32, ThinPlan(False, 1, 4, 8, 8, 4, 200)),
        ((3, 23, 261), F16, ThinPlan(False, 1, 1, 32, 4, 4, 100)),
    ],
)
def test_emitted_code_by_threads_of_this_machine(
    sizes: tuple[int, int, int], dtype: DType, plan: ThinPlan
) -> None:
    func, scheduled = planned(sizes, dtype, plan)
    on_threads(func, scheduled, {})


def test_a_step_is_read_before_it_is_used() -> None:
    _, scheduled = planned((3, 64, 4096), F32, ThinPlan(False, 1, 4, 16, 8, 4))
    held = [b.dtype for b in buffers(scheduled).values() if b.scope == "register"]
    assert held == [F32, F32, F32], "sums, and both operands"


@pytest.mark.ptxas
@pytest.mark.parametrize(
    ("sizes", "dtype", "order"),
    [
        ((2, 544, 3661), BF16, "nt"),
        ((4, 2000, 1000), F32, "nt"),
        ((2, 3292, 179), F32, "nn"),
        ((2, 1328, 12228), BF16, "nn"),
    ],
)
def test_what_is_read_ahead_stays_in_registers(
    sizes: tuple[int, int, int], dtype: DType, order: str, tmp_path: Path
) -> None:
    ((func, constants),) = sources(dense(*sizes, dtype, order))
    text = ptx(schedule_for_gpu(func, constants, H200).func)
    for report in assemble(text, tmp_path).values():
        assert (report.spilled, report.stack) == (0, 0)


def test_by_the_rules_for_all_functions() -> None:
    func, scheduled = the_kernel(dense(3, 60, 129, BF16, "nt"))
    assert not tiles(scheduled)
    assert [f.kind for f in loops(scheduled.body)].count("allreduce") == 1
    on_threads(func, scheduled, {})
