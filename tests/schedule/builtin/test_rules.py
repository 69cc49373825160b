from __future__ import annotations

import pytest

from tests.schedule.programs import dense
from tilewright.schedule.builtin.rules import RULES, ScheduledFunc
from tilewright.schedule.trace import Trace


def test_every_rule_is_described() -> None:
    assert all(RULES.values())
    with pytest.raises(AssertionError):
        ScheduledFunc(dense(), Trace(), "magic")
