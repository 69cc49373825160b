from __future__ import annotations

from tests.schedule.programs import check_schedule, dense, matmul, refused, softmax
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import find_loop
from tilewright.schedule.schedule import Schedule


def test_decompose_reduction(golden) -> None:
    before = matmul()
    sch = Schedule(before)
    i, j = sch.split("y.i0", [None, 4]), sch.split("y.i1", [None, 6])
    sch.reorder(i[0], j[0], "y.r0", i[1], j[1])
    sch.vectorize(j[1])
    assert sch.decompose_reduction("y", "y.r0") == "y.init"
    golden(print_func(sch.func))
    assert find_loop(sch.func, "y.init.ax1").kind == "vectorize"
    check_schedule(sch, before)


def test_before_the_whole_nest_and_the_innermost_loop() -> None:
    before = matmul()
    for loop in ("y.i0", "y.i1", "y.r0"):
        sch = Schedule(before)
        sch.decompose_reduction("y", loop)
        check_schedule(sch, before)


def test_guarded_reduction() -> None:
    before = matmul()
    sch = Schedule(before)
    sch.split("y.r0", [None, 4])
    sch.split("y.i0", [None, 4])
    sch.decompose_reduction("y", "y.r0.0")
    check_schedule(sch, before)


def test_fused_spatial_loops() -> None:
    before = matmul()
    sch = Schedule(before)
    sch.fuse("y.i0", "y.i1")
    sch.decompose_reduction("y", "y.i0_i1")
    check_schedule(sch, before)


def test_refused() -> None:
    sch = Schedule(dense())
    refused("decompose-reduction.loop", sch.decompose_reduction, "mm", "y.i0")
    refused("decompose-reduction.no-init", sch.decompose_reduction, "y", "y.i0")
    sch.reorder("mm.r0", "mm.i0")
    refused("decompose-reduction.outside", sch.decompose_reduction, "mm", "mm.i0")
    sch.reorder("mm.i0", "mm.r0")
    sch.fuse("mm.i0", "mm.i1", "mm.r0")
    refused("decompose-reduction.mixed", sch.decompose_reduction, "mm", "mm.i0_i1_r0")


def test_loops_that_repeat_the_reduction_are_refused() -> None:
    sch = Schedule(softmax())
    sch.compute_at("s", "y.i1")
    refused("decompose-reduction.repeated", sch.decompose_reduction, "s", "y.i0")
    sch.decompose_reduction("s", "s.ax1")
    check_schedule(sch, softmax())
