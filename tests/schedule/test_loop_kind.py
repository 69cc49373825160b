from __future__ import annotations

from tests.schedule.programs import check_schedule, dense, matmul, refused, softmax
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import find_loop
from tilewright.schedule.schedule import Schedule


def test_kinds(golden) -> None:
    before = matmul()
    sch = Schedule(before)
    sch.parallel("y.i0")
    sch.vectorize(sch.split("y.i1", [None, 4])[1])
    sch.unroll(sch.split("y.r0", [None, 2])[1])
    golden(print_func(sch.func))
    check_schedule(sch, before)


def test_reductions_cannot_run_at_once(golden) -> None:
    sch = Schedule(matmul(4, 4, 4))
    refused("parallel.reduction", sch.parallel, "y.r0")
    golden(refused("vectorize.reduction", sch.vectorize, "y.r0"))


def test_symbolic_extents_are_no_straight_line_code() -> None:
    sch = Schedule(matmul())
    refused("vectorize.extent", sch.vectorize, "y.i1")
    refused("unroll.extent", sch.unroll, "y.i1")


def test_a_loop_that_repeats_a_block() -> None:
    sch = Schedule(softmax())
    sch.compute_at("s", "y.i1")
    refused("parallel.repeated", sch.parallel, "y.i1")


def test_repeating_what_is_only_used_inside_is_allowed() -> None:
    before = dense()
    sch = Schedule(before)
    sch.cache_read("mm", "w", "global")
    sch.compute_at("w.global", "mm.i0")
    sch.parallel("mm.i0")
    check_schedule(sch, before)


def test_a_loop_that_runs_once_may_be_anything() -> None:
    sch = Schedule(matmul(4, 4, 1))
    sch.vectorize("y.r0")
    assert find_loop(sch.func, "y.r0").kind == "vectorize"
