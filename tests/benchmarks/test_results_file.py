"""Results files are JSON, and say of which machine, date and commit their figures are."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
FILES = sorted((BENCHMARKS / "results").glob("*.json"))


@pytest.fixture
def results_file(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import results_file

    return results_file


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_file_names_its_origin(path: Path, results_file: ModuleType) -> None:
    found = results_file.read_results(path)
    assert results_file.origin(found).count(", ") == 2
    assert "before commit" in results_file.origin(found) or found["commit"]


def test_what_is_written_is_read(
    results_file: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(results_file, "commit", lambda: "abc")
    path = tmp_path / "new" / "one.json"
    rows = [{"ms": 1.5, "error": float("inf")}, {"ms": 2, "levels": (float("nan"), 3)}]
    results_file.write_results(path, "a machine, 580", results=rows, more={"x": 1})
    found = results_file.read_results(path)
    assert found["results"] == [{"ms": 1.5, "error": None}, {"ms": 2, "levels": [None, 3]}]
    assert found["more"] == {"x": 1}
    assert results_file.origin(found) == f"a machine, {found['date']}, commit abc"
    assert '\n  {"ms": 1.5, "error": null},\n' in path.read_text()  # one line a row


@pytest.mark.parametrize(
    ("left_out", "missing"), [("date", "date"), ("machine", "machine"), ("commit", "commit")]
)
def test_a_file_without_an_origin_is_refused(
    left_out: str, missing: str, results_file: ModuleType, tmp_path: Path
) -> None:
    about = {"date": "2026-01-01", "machine": "m", "commit": "abc"}
    path = tmp_path / "one.json"
    path.write_text(json.dumps({**about, left_out: ""}))
    with pytest.raises(ValueError, match=f"one.json does not name the {missing}"):
        results_file.read_results(path)


def test_infinity_is_no_json(results_file: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    path.write_text('{"date": "d", "machine": "m", "commit": "c", "error": Infinity}')
    with pytest.raises(ValueError, match="Infinity is not JSON"):
        results_file.read_results(path)


def test_figures_without_a_commit_name_the_one_that_brought_them(results_file: ModuleType) -> None:
    found = {"date": "2026-01-01", "machine": {"cpu": "z80"}, "kept_in": "def"}
    assert results_file.origin(found) == "z80, 2026-01-01, before commit def"
