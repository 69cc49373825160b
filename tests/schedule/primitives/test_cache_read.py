from __future__ import annotations

from tests.schedule.programs import check_schedule, dense, refused
from tilewright.ir.loop.text import print_func
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


def test_taken_names_are_refused() -> None:
    sch = Schedule(dense())
    sch.cache_write("mm", "local")
    refused("schedule.name-taken", sch.cache_read, "add", "mm", "local")
