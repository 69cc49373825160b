from __future__ import annotations

from tests.schedule.programs import check_schedule, dense, matmul, refused
from tilewright.ir.loop.text import print_func
from tilewright.schedule.schedule import Schedule


def test_cache_write(golden) -> None:
    before = matmul()
    sch = Schedule(before)
    assert sch.cache_write("y", "local") == "y.wb"
    golden(print_func(sch.func))
    sch.reverse_compute_at("y.wb", "y.i0")
    check_schedule(sch, before)


def test_of_an_allocation() -> None:
    before = dense()
    sch = Schedule(before)
    sch.cache_write("mm", "register")
    sch.pad("mm", "i0", 4)
    check_schedule(sch, before)


def test_refused() -> None:
    sch = Schedule(dense())
    refused("cache.scope", sch.cache_write, "mm", "shared")
    sch.decompose_reduction("mm", "mm.r0")
    refused("cache-write.writers", sch.cache_write, "mm", "local")
    sch = Schedule(dense())
    sch.compute_at("mm", "add.i0")
    refused("cache-write.order", sch.cache_write, "mm", "local")
