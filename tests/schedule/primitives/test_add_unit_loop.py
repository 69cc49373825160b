from __future__ import annotations

from tests.schedule.programs import check_schedule, dense, refused
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.schedule import Schedule


def test_all_nests_in_one_loop() -> None:
    before = dense()
    sch = Schedule(before)
    assert sch.add_unit_loop() == "once"
    assert all(loops_above(sch.func, name)[0].name == "once" for name in ("mm", "add", "y"))
    sch.bind("once", "grid")
    check_schedule(sch, before)
    refused("schedule.name-taken", sch.add_unit_loop)


def test_from_a_block_on() -> None:
    before = dense()
    sch = Schedule(before)
    sch.add_unit_loop("add")
    assert loops_above(sch.func, "mm")[0].name != "once"
    assert all(loops_above(sch.func, name)[0].name == "once" for name in ("add", "y"))
    check_schedule(sch, before)
