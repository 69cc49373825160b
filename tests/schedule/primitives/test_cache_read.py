from __future__ import annotations

from tests.schedule.programs import check_schedule, dense, refused
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import blocks
from tilewright.schedule.schedule import Schedule


def test_cache_read(golden) -> None:
    before = dense()
    sch = Schedule(before)
    assert sch.cache_read("mm", "w", "local") == "w.local"
    golden(print_func(sch.func))
    sch.compute_at("w.local", "mm.i1")
    check_schedule(sch, before)


def test_of_an_allocation() -> None:
    before = dense()
    sch = Schedule(before)
    sch.cache_read("add", "mm", "global")
    sch.compute_at("mm.global", "add.i1")
    check_schedule(sch, before)


def test_a_copy_for_several_readers() -> None:
    before = parse_func("""func @f(x: f32[4], out y: f32[4], out z: f32[4]) {
      for i in serial(4) { block "y" [v: S(4) = i] reads x[v] writes y[v] { y[v] = x[v] } }
      for j in serial(4) { block "z" [v: S(4) = j] reads x[v] writes z[v] { z[v] = x[v] + 1.0 } }
    }""")
    sch = Schedule(before)
    for block in ("y", "z"):
        assert sch.cache_read(block, "x", "local") == "x.local"
    assert [b.name for b in blocks(sch.func.body)] == ["x.local", "y", "z"]
    check_schedule(sch, before)


def test_in_steps_that_each_write_the_buffer() -> None:
    before = parse_func("""func @f(x: f32[3, 4], out y: f32[3, 4]) {
      alloc p: f32[4]
      for t in serial(3) {
        for i in serial(4) {
          block "p" [s: S(3) = t, v: S(4) = i] reads x[s, v] writes p[v] { p[v] = x[s, v] }
        }
        for j in serial(4) {
          block "y" [s: S(3) = t, v: S(4) = j] reads p[v] writes y[s, v] { y[s, v] = p[v] + 1.0 }
        }
      }
    }""")
    sch = Schedule(before)
    sch.cache_read("y", "p", "local")
    assert [b.name for b in blocks(sch.func.body)] == ["p", "p.local", "y"]
    check_schedule(sch, before)


def test_refused() -> None:
    sch = Schedule(dense())
    refused("cache-read.buffer", sch.cache_read, "mm", "bias", "local")
    refused("cache.scope", sch.cache_read, "mm", "w", "nowhere")
    sch.cache_read("mm", "w", "local")
    sch.compute_at("mm", "add.i0")
    refused("cache-read.order", sch.cache_read, "add", "mm", "local")
    sch = Schedule(dense())
    sch.decompose_reduction("mm", "mm.r0")
    refused("cache-read.written", sch.cache_read, "mm", "mm", "local")
    sch.cache_read("mm", "w", "local")
    refused("cache-read.copy", sch.cache_read, "w.local", "w", "local")


def test_taken_names_are_refused() -> None:
    sch = Schedule(dense())
    sch.cache_write("mm", "local")
    refused("schedule.name-taken", sch.cache_read, "add", "mm", "local")
