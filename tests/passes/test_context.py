from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from tilewright.passes.context import PassContext, PassLog, PassRecord, PrecisionNote, WhyNotFused
from tilewright.target.host import host


def test_a_context_is_frozen_and_has_a_log_of_its_own() -> None:
    context = PassContext(host())
    with pytest.raises(FrozenInstanceError):
        context.precision = "bf16"  # type: ignore[misc]
    assert context.precision == "f32"
    assert context.log is not PassContext(host()).log


def test_notes_as_lines() -> None:
    note = PrecisionNote("y", "matmul f32[2, 2]", "bf16", "it is faster")
    assert str(note) == "bf16  matmul f32[2, 2]  y: it is faster"
    assert str(WhyNotFused("exp a", "neg b", "why")) == "exp a and neg b: why"


def test_a_line_for_each_record() -> None:
    log = PassLog([PassRecord("cse", 0.002, 7, 5, True), PassRecord("dce", 0.0, 5, 5, False)])
    first, second = log.table().splitlines()
    assert first.split() == ["cse", "2.0", "ms", "7", "->", "5"]
    assert second.endswith("(unchanged)")
