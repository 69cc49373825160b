from __future__ import annotations

from tests.schedule.programs import dense, refused
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.loop.walk import find_block, find_loop
from tilewright.schedule.schedule import Schedule


def test_annotate() -> None:
    before = dense()
    sch = Schedule(before)
    sch.annotate("mm.i0", "partition", 1)
    sch.annotate("mm.i0", "partition", 2)
    sch.annotate("mm", "aligned", 16)
    assert find_loop(sch.func, "mm.i0").annotations == (("partition", 2),)
    assert find_block(sch.func, "mm").annotations == (("aligned", 16),)
    assert parse_func(print_func(sch.func)) == sch.func
    assert sch.trace.replay(before) == sch.func


def test_refused() -> None:
    refused("schedule.no-block", Schedule(dense()).annotate, "no", "a", 1)
