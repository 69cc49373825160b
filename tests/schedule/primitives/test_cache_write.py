from __future__ import annotations

from tests.for_each import for_each
from tests.schedule.programs import check_schedule, dense, matmul, refused
from tilewright.ir.loop.text import print_func
from tilewright.ir.loop.walk import find_block, loops_above
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
    refused("cache.scope", Schedule(dense()).cache_write, "mm", "nowhere")


@for_each("loop", ["mm.i0", "mm.r0"])
def test_what_starts_a_sum_writes_the_same(loop: str) -> None:
    before = dense()
    sch = Schedule(before)
    sch.decompose_reduction("mm", loop)
    sch.cache_write("mm", "local")
    assert {r.buffer for r in find_block(sch.func, "mm.init").writes} == {"mm.local"}
    check_schedule(sch, before)


def test_in_a_loop_with_others_what_an_iteration_writes_is_copied() -> None:
    before = dense()
    sch = Schedule(before)
    sch.compute_at("mm", "add.i0")
    sch.cache_write("mm", "local")
    assert loops_above(sch.func, "mm.wb")[0].name == "add.i0"
    check_schedule(sch, before)
