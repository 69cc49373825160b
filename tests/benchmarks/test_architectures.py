"""The page of architectures says of each whether it was compared, and how far off it is."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def architectures(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import architectures

    for module in ("architectures", "results_file"):
        monkeypatch.setattr(f"{module}.commit", lambda: "abc")
    return architectures


def _results(architectures: ModuleType) -> dict[str, Any]:
    answers = [
        architectures.Answer("opt", "decoder", "same", 84, 1.5, 0.0),
        architectures.Answer("bert", "encoder", "differs", 86, 1.5, 0.1),
        architectures.Answer("t5", "pair", "torch cannot export it: ExportError"),
    ]
    about = {"date": "2026-01-01", "commit": "abc", "machine": "z80"}
    return {**about, "results": list(map(vars, answers))}


def test_what_never_ran_has_no_error(architectures: ModuleType) -> None:
    page = architectures.page(_results(architectures))
    assert "1 of 3 architectures" in page
    assert "z80, 2026-01-01, commit abc." in page
    assert "| decoder | opt | 84 | same | 0e+00 |" in page
    assert "| encoder | bert | 86 | differs | 1e-01 |" in page
    assert "| pair | t5 | – | torch cannot export it: ExportError | – |" in page


def test_answers_of_two_commits_make_no_page(
    architectures: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "one.json"
    assert architectures.known(path) == []
    architectures.write_results(path, "z80", results=_results(architectures)["results"])
    assert [one.name for one in architectures.known(path)] == ["opt", "bert", "t5"]
    monkeypatch.setattr(architectures, "commit", lambda: "def")
    with pytest.raises(SystemExit, match="this is def"):
        architectures.known(path)


def test_the_page_is_that_of_the_results(architectures: ModuleType) -> None:
    found = architectures.read_results(architectures.RESULTS)
    assert architectures.PAGE.read_text() == architectures.page(found)
