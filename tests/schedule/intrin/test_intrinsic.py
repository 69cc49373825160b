from __future__ import annotations

from tilewright.schedule.intrin.intrinsic import Intrinsic


def test_an_instruction_needs_its_machine_its_features_and_a_text() -> None:
    row = Intrinsic("", "dot", "x86_64", ("one", "two"), "text")
    assert row.available("x86_64", ("+two", "+one", "+three"))
    assert not row.available("x86_64", ("+one",))
    assert not row.available("aarch64", ("+one", "+two"))
    assert not Intrinsic("", "dot", "x86_64").available("x86_64", ())
