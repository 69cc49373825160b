from __future__ import annotations

from tests.schedule.programs import check_schedule, conv, dense, refused
from tilewright.arith.expr import TRUE
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import find_block
from tilewright.schedule.schedule import Schedule


def test_pad(golden) -> None:
    before = dense()
    sch = Schedule(before)
    sch.pad("mm", "i0", 8)
    golden(print_func(sch.func))
    check_schedule(sch, before)


def test_padded_then_split_needs_no_guard() -> None:
    before = dense()
    sch = Schedule(before)
    sch.pad("mm", "i0", 8)
    sch.pad("mm", "i1", 12)
    sch.split("mm.i0", [None, 2, 4])
    sch.split("mm.i1", [None, 12])
    assert find_block(sch.func, "mm").predicate is TRUE
    check_schedule(sch, before)


def test_masks_follow_the_clamped_index() -> None:
    before = conv()
    sch = Schedule(before)
    sch.pad("conv", "i1", 4)
    check_schedule(sch, before)


def test_copies_are_masked_where_neighbours_lie_side_by_side() -> None:
    before = dense()
    sch = Schedule(before)
    copy = sch.cache_read("mm", "w", "global")
    sch.pad(copy, "v1", 8)
    assert "w[v0, v1 ? v1 < N]" in print_func(sch.func)
    sch.pad(copy, "v0", 8)
    check_schedule(sch, before)


def test_what_is_a_multiple_already_stays() -> None:
    sch = Schedule(dense(16, 24, 5))
    before = sch.func
    sch.pad("mm", "i0", 8)
    assert sch.func is before


def test_refused() -> None:
    sch = Schedule(dense())
    refused("pad.allocation", sch.pad, "y", "i0", 8)
    refused("pad.iterator", sch.pad, "mm", "r0", 8)
    refused("pad.iterator", sch.pad, "mm", "no", 8)
    refused("pad.multiple", sch.pad, "mm", "i0", 0)
    refused("pad.fill", sch.pad, "mm", "i0", 8, "ones")
    sch.split("mm.i0", [None, 4])
    refused("pad.bound", sch.pad, "mm", "i0", 8)


def test_shared_loops_are_refused() -> None:
    sch = Schedule(dense())
    sch.reverse_compute_at("add", "mm.i0")
    refused("pad.shared", sch.pad, "mm", "i0", 8)


def test_blocks_of_blocks_are_refused() -> None:
    sch = Schedule(dense())
    sch.blockize("mm.i1")
    refused("pad.nested", sch.pad, "mm.tile", "i0.o", 8)


def test_what_a_mask_keeps_in_bounds_is_not_clamped() -> None:
    text = """
    func @f(x: f32[6], out y: f32[8]) {{
      alloc t: f32[8]
      for i in serial(8) {{
        block "t" [v: S(8) = i] reads x[v - 1] writes t[v]
          {{ t[v] = x[v - 1 ? 0 < v & v < {limit}] }}
      }}
      for j in serial(8) {{
        block "y" [w: S(8) = j] reads t[w] writes y[w]
          {{ y[w] = t[w] }}
      }}
    }}"""
    for limit, clamped in ((7, False), (6, False), (8, True)):
        sch = Schedule(parse_func(text.format(limit=limit)))
        sch.pad("t", "v", 12)
        assert ("min(" in print_func(sch.func)) == clamped


def test_copies_have_zeros_past_the_end_if_asked_for() -> None:
    before = parse_func(
        """
        func @f(x: f32[6, 5], out y: f32[5, 8]) {
          alloc t: f32[5, 8]
          for i in serial(5) {
            for j in serial(8) {
              block "t" [v: S(5) = i, w: S(8) = j] reads x[w, v] writes t[v, w]
                { t[v, w] = x[w, v ? w < 6] }
            }
          }
          for k in serial(5) {
            for l in serial(8) {
              block "y" [v: S(5) = k, w: S(8) = l] reads t[v, w] writes y[v, w]
                { y[v, w] = t[v, w] }
            }
          }
        }"""
    )
    sch = Schedule(before)
    sch.pad("t", "v", 4, fill="zeros")
    assert "x[w, v ? w < 6 & v < 5]" in print_func(sch.func)
    check_schedule(sch, before)


def test_neighbours_that_are_summed_are_zeros_past_the_end_if_asked_for() -> None:
    before = parse_func(
        """
        func @f(a: f32[3], b: f32[3, 5], out y: f32[5]) {
          alloc t: f32[5]
          for j in serial(5) {
            for k in serial(3) {
              block "t" [v: S(5) = j, r: R(3) = k] reads a[r], b[r, v], t[v] writes t[v]
                init { t[v] = 0.0 }
                { t[v] += a[r] * b[r, v] }
            }
          }
          for l in serial(5) {
            block "y" [v: S(5) = l] reads t[v] writes y[v] { y[v] = t[v] }
          }
        }"""
    )
    sch = Schedule(before)
    sch.pad("t", "v", 4, fill="zeros")
    assert "b[r, v ? v < 5]" in print_func(sch.func)
    check_schedule(sch, before)
