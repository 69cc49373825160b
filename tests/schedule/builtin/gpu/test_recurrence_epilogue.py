from __future__ import annotations

import pytest

from tests.schedule.builtin.gpu.scheduled import scheduled
from tests.schedule.builtin.gpu.test_recurrence import steps_of
from tilewright.ir.loop.walk import blocks, find_block, loops_above


def _threads(cell: str, block: str) -> list[str]:
    """The thread loops around a block, in the steps of a cell."""
    (result,) = scheduled(steps_of(cell, 3, 1, 96))
    return [f.name for f in loops_above(result.func, block) if f.kind == "thread"]


@pytest.mark.parametrize("block", ["value", "y1", "y0"])
def test_one_thread_has_all_formulas_of_a_unit(block: str) -> None:
    assert _threads("lstm", block) == _threads("lstm", "y2")


def test_formulas_that_do_not_need_each_other_are_apart() -> None:
    assert _threads("gru", "update") != _threads("gru", "reset")
    assert _threads("gru", "y1") == _threads("gru", "value")


def test_what_is_given_of_each_unit_is_read_by_a_nest_of_its_own() -> None:
    (result,) = scheduled(steps_of("lstm", 3, 2, 96))
    names = [b.name for b in blocks(result.func.body)]
    assert names.index("x0.register") < names.index("y2")
    assert {r.buffer for r in find_block(result.func, "y2").reads} >= {"x0.register", "sums"}
    assert "x0" not in {r.buffer for r in find_block(result.func, "value").reads}
