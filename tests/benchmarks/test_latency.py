"""A measurement that was broken off goes on at the same commit only."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def latency(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import latency

    for module in ("latency", "results_file"):
        monkeypatch.setattr(f"{module}.commit", lambda: "abc")
    return latency


def test_rows_of_another_commit_are_refused(
    latency: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path, rows = tmp_path / "models.json", [{"model": "net", "min_ms": 1.5}]
    asked = Namespace(resume=True, json=path)
    assert latency.known_rows(asked) == []
    latency.write(path, {"cpu": "z80"}, rows)
    assert latency.known_rows(asked) == rows
    assert latency.known_rows(Namespace(resume=False, json=path)) == []
    monkeypatch.setattr(latency, "commit", lambda: "def")
    with pytest.raises(SystemExit, match="is of commit abc, this is def"):
        latency.known_rows(asked)
