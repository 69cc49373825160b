from __future__ import annotations

from tests.schedule.programs import check_schedule, matmul, refused
from tilewright.ir.loop.walk import find_loop
from tilewright.schedule.schedule import Schedule


def test_steps_of_a_sum_are_written_out() -> None:
    before = matmul()
    sch = Schedule(before)
    _, inner = sch.split("y.r0", [None, 2])
    sch.unroll(inner)
    assert find_loop(sch.func, inner).kind == "unroll"
    check_schedule(sch, before)


def test_a_symbolic_extent_is_refused() -> None:
    refused("unroll.extent", Schedule(matmul()).unroll, "y.r0")
