"""Figures name the commit that they were measured at."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import revision

    if (BENCHMARKS.parent / ".git").exists():
        assert re.fullmatch(r"[0-9a-f]{12,}\+?", revision.commit())
    monkeypatch.setattr(revision, "ROOT", tmp_path)
    assert revision.commit() == ""
    assert revision.sentence("abc") == "Commit abc."
    assert revision.sentence("") == revision.sentence(None) == "The commit was not recorded."
