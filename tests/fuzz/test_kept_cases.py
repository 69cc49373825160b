"""What the fuzzers have found before: shrunk graphs, and models that did harm."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.fuzz.campaign import check_result
from tilewright.fuzz.case_file import read_case
from tilewright.fuzz.differential_check import CheckResult, check_case
from tilewright.fuzz.robustness_check import check_robustness
from tilewright.fuzz.sandbox import DEFAULT_LIMITS, SandboxLimits, preload, run_isolated

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*.onnx"))
MALFORMED = sorted((HERE / "malformed").glob("*/*.onnx"))
PARTS = 8


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    preload()


@pytest.mark.parametrize("part", range(PARTS))
def test_graphs(part: int) -> None:
    assert _findings(CASES[part::PARTS]) == {}


def _findings(paths: list[Path]) -> dict[str, str]:
    """What is wrong with kept graphs; they share a process unless one of them ends it."""
    limits = SandboxLimits(seconds=DEFAULT_LIMITS.seconds * len(paths))
    outcome = run_isolated(lambda: [check_case(read_case(p)).as_json() for p in paths], limits)
    if outcome.kind == "done":
        results = [check_result(replace(outcome, value=value)) for value in outcome.value]
    elif len(paths) == 1:
        results = [check_result(outcome)]
    else:
        return {name: detail for p in paths for name, detail in _findings([p]).items()}
    return {p.stem: r.detail for p, r in zip(paths, results, strict=True) if r.is_finding}


def test_who_ends_the_process_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(case: Path) -> CheckResult:
        if case == CASES[1]:
            os.abort()
        return CheckResult("wrong", "by 3") if case == CASES[2] else CheckResult("right")

    monkeypatch.setitem(globals(), "read_case", lambda path: path)
    monkeypatch.setitem(globals(), "check_case", check)
    found = _findings(CASES[:3])
    assert found.keys() == {CASES[1].stem, CASES[2].stem}
    assert found[CASES[1].stem].startswith("SIGABRT")
    assert found[CASES[2].stem] == "by 3"


@pytest.mark.parametrize("path", MALFORMED, ids=[path.parent.name for path in MALFORMED])
def test_damaged_model(path: Path) -> None:
    result = check_result(run_isolated(lambda: check_robustness(path, {}).as_json()))
    assert not result.is_finding, result.detail
