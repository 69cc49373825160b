from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.programs import check_schedule, matmul, refused
from tilewright.ir.loop.walk import find_loop
from tilewright.schedule.schedule import Schedule


def test_blocks_of_threads() -> None:
    before = matmul()
    sch = Schedule(before)
    outer, inner = sch.split("y.i0", [None, 4])
    sch.bind(outer, "grid")
    sch.bind(inner, "thread")
    assert [find_loop(sch.func, loop).kind for loop in (outer, inner)] == ["grid", "thread"]
    check_schedule(sch, before)


def test_refused() -> None:
    sch = Schedule(matmul())
    refused("bind.level", sch.bind, "y.i0", "lane")
    refused("bind.reduction", sch.bind, "y.r0", "grid")
    refused("bind.extent", sch.bind, "y.i0", "thread")
    sch.bind("y.i0", "grid")
    refused("bind.nesting", sch.bind, "y.i1", "grid")


@for_each("kind", ["unroll", "vectorize"])
def test_not_in_loops_that_are_written_out(kind: str) -> None:
    sch = Schedule(matmul(4, 4, 4))
    getattr(sch, kind)("y.i0")
    refused("bind.nesting", sch.bind, "y.i1", "thread")


def test_threads_combine_what_each_has() -> None:
    before = matmul(4, 4, 8)
    sch = Schedule(before)
    refused("bind.allreduce", sch.bind, "y.i0", "allreduce")
    part, lane = sch.split("y.r0", [None, 4])
    sch.reorder(lane, part)
    refused("bind.allreduce", sch.bind, lane, "allreduce")
    sch.rfactor("y", lane)
    sch.bind("y.final.ax2", "allreduce")
    assert find_loop(sch.func, "y.final.ax2").kind == "allreduce"
    check_schedule(sch, before, exact=False)
