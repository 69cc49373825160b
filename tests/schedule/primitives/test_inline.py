from __future__ import annotations

from tests.schedule.programs import check_schedule, conv, dense, func_of, refused, softmax
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import blocks, buffers
from tilewright.schedule.schedule import Schedule


def test_inline(golden) -> None:
    before = dense()
    sch = Schedule(before)
    sch.inline("add")
    golden(print_func(sch.func))
    assert "add" not in buffers(sch.func)
    check_schedule(sch, before)


def test_masked_readers_still_see_zero(golden) -> None:
    before = conv()
    sch = Schedule(before)
    sch.inline("twice")
    golden(print_func(sch.func))
    check_schedule(sch, before)


def test_into_several_readers() -> None:
    before = softmax()
    sch = Schedule(before)
    sch.inline("e")
    assert [b.name for b in blocks(sch.func.body)] == ["m", "s", "y"]
    check_schedule(sch, before)


def test_refused() -> None:
    sch = Schedule(dense())
    refused("inline.allocation", sch.inline, "y")
    refused("inline.reduction", sch.inline, "mm")
    refused("schedule.no-block", sch.inline, "nothing")


def test_an_integer_is_not_divided_by_what_a_mask_hides() -> None:
    before = func_of(
        """
        func @f(a: i32[8], out y: i32[8]) {
          alloc t: i32[8]
          for i in serial(8) {
            block "t" [v: S(8) = i] reads a[v] writes t[v] { t[v] = 100:i32 / a[v] }
          }
          for j in serial(8) {
            block "y" [v: S(8) = j] reads t[v] writes y[v] { y[v] = t[v ? v < 4] }
          }
        }
        """
    )
    sch = Schedule(before)
    sch.inline("t")
    assert "select(v < 4, a[v ? v < 4], 1:i32)" in print_func(sch.func)
    check_schedule(sch, before)


def test_other_indices_and_bodies_are_refused() -> None:
    func = func_of(
        """
        func @f(a: f32[8], out y: f32[8]) {
          alloc t: f32[8]
          alloc u: f32[8]
          for i in serial(8) {
            block "t" [v: S(8) = i] reads a[v] writes t[7 - v] { t[7 - v] = a[v] }
          }
          for k in serial(8) {
            block "u" [v: S(8) = k] reads t[v] writes u[v] {
              u[v] = t[v]
              u[v] = t[v]
            }
          }
          for j in serial(8) {
            block "y" [v: S(8) = j] reads u[v] writes y[v] { y[v] = u[v] }
          }
        }
        """
    )
    refused("inline.index", Schedule(func).inline, "t")
    refused("inline.body", Schedule(func).inline, "u")
