"""Damaged models: a fixed seed, a bounded time, nothing but models that work and clear errors."""

from __future__ import annotations

import json
import subprocess
import sys


def test_no_damaged_model_does_harm() -> None:
    command = [sys.executable, "-m", "tilewright", "fuzz", "--mutate", "--graphs", "120"]
    done = subprocess.run(
        [*command, "--seconds", "25", "--json"], capture_output=True, text=True, timeout=300
    )
    report = json.loads(done.stdout)
    assert report["findings"] == []
    assert done.returncode == 0
    assert report["kinds"]["refused"] >= 5
    assert report["kinds"]["right"] >= 2
