"""The architecture page has the layers that import-linter checks, and every package of the code."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()


def _layers() -> list[list[str]]:
    """The layers of pyproject.toml, as far as their packages exist."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    contract = settings["tool"]["importlinter"]["contracts"][0]
    rows = [re.findall(r"\w+", layer) for layer in contract["layers"]]
    there = [[p for p in row if (ROOT / "tilewright" / p / "__init__.py").exists()] for row in rows]
    return [row for row in there if row]


def test_layers() -> None:
    shown = re.search(r"^```text\n(cli\n.+?)^```", PAGE, re.DOTALL | re.MULTILINE)
    assert shown is not None
    assert [line.split(" | ") for line in shown[1].splitlines()] == _layers()


def test_every_stage_is_a_package() -> None:
    stages = re.findall(r"^\| .+ \| `tilewright/(\w+)` \|", PAGE, re.MULTILINE)
    assert len(stages) >= 7
    assert all((ROOT / "tilewright" / stage / "__init__.py").exists() for stage in stages)
