from __future__ import annotations

from tests.schedule.programs import check_schedule, conv, dense, refused
from tilewright.arith.expr import TRUE
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import find_block
from tilewright.schedule.schedule import Schedule

MAXIMUM = """
func @most(x: f32[4, 5], out y: f32[4]) {
  for i, k in serial(4, 5) {
    block "y" [vi: S(4) = i, vk: R(5) = k] init { y[vi] = -inf } { y[vi] = max(y[vi], x[vi, vk]) }
  }
}
"""


def test_parts_of_equal_length_need_no_guard() -> None:
    before = dense()
    sch = Schedule(before)
    sch.pad_reduction("mm", "r0", 8)
    assert "? r0 < K" in print_func(sch.func)
    number, _ = sch.split("mm.r0", [4, None])
    part = sch.rfactor("mm", number)
    assert find_block(sch.func, part).predicate is TRUE
    check_schedule(sch, before, exact=False)


def test_masks_of_padding_stay() -> None:
    before = conv()
    sch = Schedule(before)
    sch.pad_reduction("conv", "r0", 4)
    check_schedule(sch, before)


def test_what_is_a_multiple_already_stays() -> None:
    sch = Schedule(dense(16, 24, 8))
    before = sch.func
    sch.pad_reduction("mm", "r0", 4)
    assert sch.func is before


def test_refused() -> None:
    sch = Schedule(dense())
    refused("pad-reduction.iterator", sch.pad_reduction, "mm", "i0", 8)
    refused("pad-reduction.iterator", sch.pad_reduction, "mm", "no", 8)
    refused("pad-reduction.multiple", sch.pad_reduction, "mm", "r0", 0)
    most = Schedule(parse_func(MAXIMUM))
    refused("pad-reduction.term", most.pad_reduction, "y", "vk", 8)
    sch.split("mm.r0", [None, 4])
    refused("pad-reduction.bound", sch.pad_reduction, "mm", "r0", 8)
