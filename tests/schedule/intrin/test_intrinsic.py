from __future__ import annotations

from tilewright.schedule.intrin.intrinsic import Intrinsic, IntrinsicTable


def test_an_instruction_needs_its_machine_its_features_and_a_text() -> None:
    row = Intrinsic("", "dot", "x86_64", ("one", "two"), "text")
    assert row.available("x86_64", ("+two", "+one", "+three"))
    assert not row.available("x86_64", ("+one",))
    assert not row.available("aarch64", ("+one", "+two"))
    assert not Intrinsic("", "dot", "x86_64").available("x86_64", ())


def test_a_row_is_made_when_it_is_first_asked_for() -> None:
    made: list[str] = []

    def row() -> Intrinsic:
        made.append("late")
        return Intrinsic("", "mma")

    plain = Intrinsic("", "dot")
    table = IntrinsicTable({"plain": plain, "late": row})
    assert list(table) == ["plain", "late"]
    assert len(table) == 2
    assert "late" in table
    assert "other" not in table
    assert table.get("other") is None
    assert table["plain"] is plain
    assert not made
    assert table["late"] is table["late"]
    assert made == ["late"]
