from __future__ import annotations

from tests.schedule.programs import check_schedule, matmul, refused
from tilewright.ir.loop.walk import find_loop
from tilewright.schedule.schedule import Schedule


def test_rows_run_on_several_threads() -> None:
    before = matmul()
    sch = Schedule(before)
    sch.parallel("y.i0")
    assert find_loop(sch.func, "y.i0").kind == "parallel"
    check_schedule(sch, before)


def test_a_sum_does_not() -> None:
    refused("parallel.reduction", Schedule(matmul()).parallel, "y.r0")
