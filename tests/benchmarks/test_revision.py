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
    monkeypatch.delenv(revision.COPY_OF, raising=False)
    assert revision.commit() == ""
    monkeypatch.setenv(revision.COPY_OF, "abc")
    assert revision.commit() == "abc"
