"""A limit to older instructions holds for every engine that takes part."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.target.registry import resolve_cpu

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_a_limit_reaches_processes_started_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import isa

    limit = isa.LIMITS["avx2"]
    for name in (*limit.environment, isa.VARIABLE):
        monkeypatch.setenv(name, "")  # so that it is put back
    assert isa.limited_target() == "native"
    isa.limit_to("avx2")
    assert "+avx2" in resolve_cpu(isa.limited_target()).features
    engines = [sys.executable, str(BENCHMARKS / "engines.py")]
    environment = {**os.environ, "PYTHONPATH": str(BENCHMARKS.parent)}
    there = subprocess.check_output(engines, text=True, env=environment).split()
    assert "tilewright" in there
    assert not {*there} & {*isa.NOT_LIMITED}
