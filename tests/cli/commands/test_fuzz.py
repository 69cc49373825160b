from __future__ import annotations

import json
from pathlib import Path

from tests.cli.invoke import invoke


def test_json_says_what_was_tried(tmp_path: Path) -> None:
    result = invoke("fuzz", "--graphs", "2", "--ops", "Relu", "--out", str(tmp_path), "--json")
    report = json.loads(result.stdout)
    assert report["tried"] == 2
    assert "Relu" in report["operators"]
    assert report["findings"] == []


def test_a_summary_for_people() -> None:
    result = invoke("fuzz", "--mutate", "--graphs", "2", "--ops", "Relu", "--seed", "1")
    assert "2 tried" in result.stdout
    assert "compared" not in result.stdout
    result = invoke("fuzz", "--graphs", "1", "--ops", "Relu", "--seed", "1")
    assert "1 compared with the interpreter, of these " in result.stdout
    assert "with ONNX's reference" in result.stdout


def test_single_damages_are_damages() -> None:
    result = invoke("fuzz", "--exhaustive")
    assert result.exit_code == 2
    assert "--exhaustive needs --mutate" in result.stderr
