from __future__ import annotations

from tests.schedule.programs import check_schedule, conv, dense, matmul, refused
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import loops
from tilewright.schedule.schedule import Schedule


def test_reorder(golden) -> None:
    before = matmul()
    sch = Schedule(before)
    sch.reorder("y.r0", "y.i0")
    golden(print_func(sch.func))
    check_schedule(sch, before, exact=False)


def test_loops_that_are_not_named_stay() -> None:
    sch = Schedule(conv())
    sch.reorder("conv.r1", "conv.i1")
    names = [f.name for f in loops(sch.func.body) if f.name.startswith("conv")]
    assert names == ["conv.i0", "conv.r1", "conv.r0", "conv.i1"]
    check_schedule(sch, conv(), exact=False)


def test_one_loop_changes_nothing() -> None:
    sch = Schedule(matmul())
    before = sch.func
    sch.reorder("y.i0")
    assert sch.func is before


def test_refused(golden) -> None:
    sch = Schedule(dense())
    refused("reorder.twice", sch.reorder, "mm.i0", "mm.i0")
    refused("reorder.not-nested", sch.reorder, "mm.i0", "add.i0")
    golden(refused("reorder.not-nested", sch.reorder, "add.i1", "y.i0"))


def test_sums_stay_inside_loops_that_repeat_them() -> None:
    before = dense(5, 7, 4)
    sch = Schedule(before)
    sch.pad("add", "i0", 8)
    sch.compute_at("mm", "add.i0")
    sch.inline("add")  # leaves the loop, in which the last row is computed again and again
    sch.fuse("mm.ax0", "mm.ax1")
    refused("reorder.repeated", sch.reorder, "mm.ax2", "add.i0")
    refused("decompose-reduction.repeated", sch.decompose_reduction, "mm", "add.i0")
    refused("blockize.repeated", sch.blockize, "add.i0")
    check_schedule(sch, before)
