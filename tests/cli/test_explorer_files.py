from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.models import mlp
from tilewright.cli.explorer_files import write_explorer
from tilewright.driver.options import make_options
from tilewright.driver.report.explorer.explore import explore


def test_files_and_where_they_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = explore("mlp", mlp(2), make_options("x86-64-v3"))
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    write_explorer(model, page, trace)
    assert capsys.readouterr().out.split() == [str(page), str(trace)]
    assert 'id="kernel-0"' in page.read_text()
    assert len(json.loads(trace.read_text())["traceEvents"]) == len(model.build.steps)
