"""What the fuzzers have found before: shrunk graphs, and models that did harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tilewright.fuzz.campaign import check_result
from tilewright.fuzz.case_file import read_case
from tilewright.fuzz.differential_check import check_case
from tilewright.fuzz.robustness_check import check_robustness
from tilewright.fuzz.sandbox import preload, run_isolated

HERE = Path(__file__).parent
CASES = sorted((HERE / "cases").glob("*.onnx"))
MALFORMED = sorted((HERE / "malformed").glob("*/*.onnx"))


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    preload()


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_graph(path: Path) -> None:
    result = check_result(run_isolated(lambda: check_case(read_case(path)).as_json()))
    assert not result.is_finding, result.detail


@pytest.mark.parametrize("path", MALFORMED, ids=[path.parent.name for path in MALFORMED])
def test_damaged_model(path: Path) -> None:
    result = check_result(run_isolated(lambda: check_robustness(path, {}).as_json()))
    assert not result.is_finding, result.detail
