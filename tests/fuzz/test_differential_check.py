from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from tests.fuzz.models import case_of
from tilewright.fuzz import differential_check
from tilewright.fuzz.differential_check import CheckResult, check_case
from tilewright.fuzz.oracle import Expected


def _sum() -> differential_check.Case:
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    return case_of([helper.make_node("ReduceSum", ["x"], ["y"])], {"x": x}, ["y"])


def test_a_right_answer() -> None:
    assert check_case(_sum()) == CheckResult("right", reference=True)


def test_what_has_no_expected_value_is_not_called_right(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> Expected:
        return Expected([np.full((1, 1), 66, np.float32)], [None], False)

    monkeypatch.setattr(differential_check, "expect", unknown)
    result = check_case(_sum())
    assert result == CheckResult("uncompared")
    assert not result.is_finding


def test_a_wrong_answer_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(*_: object) -> Expected:
        return Expected([np.full((1, 1), 67, np.float32)], [np.zeros((1, 1))], False)

    monkeypatch.setattr(differential_check, "expect", other)
    result = check_case(_sum())
    assert result.kind == "wrong"
    assert "66.0 for 67.0" in result.detail
    assert result.is_finding


def test_what_cannot_be_read_is_refused() -> None:
    case = case_of([helper.make_node("Nope", ["x"], ["y"])], {"x": np.ones(2)}, ["y"])
    assert check_case(case).kind == "refused"
    assert not check_case(case).is_finding


def test_other_exceptions_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differential_check, "compile", lambda *_, **__: 1 // 0)
    assert check_case(_sum()).kind == "internal"
