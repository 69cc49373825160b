"""Mutated models: a fixed seed, a bounded time, nothing but models that work and clear errors."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tilewright.fuzz import mutation_campaign
from tilewright.fuzz.campaign import FuzzSettings
from tilewright.fuzz.differential_check import CheckResult
from tilewright.fuzz.exhaustive_mutations import all_mutations


def test_no_damaged_model_does_harm() -> None:
    command = [sys.executable, "-m", "tilewright", "fuzz", "--mutate", "--graphs", "60"]
    done = subprocess.run(
        [*command, "--seconds", "25", "--json"], capture_output=True, text=True, timeout=300
    )
    report = json.loads(done.stdout)
    assert report["findings"] == []
    assert done.returncode == 0
    assert report["kinds"]["refused"] >= 5
    assert report["kinds"]["right"] >= 2


def test_single_mutations_from_a_number_on() -> None:
    command = [sys.executable, "-m", "tilewright", "fuzz", "--mutate", "--exhaustive"]
    count = len(all_mutations(frozenset({"Gather"})))
    command += ["--ops", "Gather", "--start", str(count - 3), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    report = json.loads(done.stdout)
    assert report["tried"] == 3  # it ends with the last
    assert report["findings"] == []


def test_findings_that_are_alike_are_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        mutation_campaign, "check_robustness", lambda *_: CheckResult("internal", "X: y")
    )
    settings = FuzzSettings(graphs=3, operators=frozenset({"Gather"}), first=4)
    report = mutation_campaign.run_exhaustive(settings)
    assert [found["graph"] for found in report.findings] == ["0:4"]
    assert report.kinds["internal"] == 3
    name = all_mutations(settings.operators)[4][1].name
    assert report.findings[0]["operators"] == ["test_gather_0", name]
