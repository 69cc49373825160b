from __future__ import annotations

from tests.schedule.programs import check_schedule, dense, refused
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.schedule import Schedule


def test_set_scope() -> None:
    before = dense()
    sch = Schedule(before)
    sch.set_scope("mm", "register")
    assert buffers(sch.func)["mm"].scope == "register"
    check_schedule(sch, before)


def test_refused() -> None:
    sch = Schedule(dense())
    refused("set-scope.scope", sch.set_scope, "mm", "nowhere")
    refused("set-scope.allocation", sch.set_scope, "y", "local")
    refused("set-scope.allocation", sch.set_scope, "no", "local")
