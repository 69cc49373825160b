"""Programs beside the package that no test runs import names that it has."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAMS = [*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "docs").rglob("*.py")]


def _missing(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("tilewright"):
            continue
        module = importlib.import_module(str(node.module))
        for name in (alias.name for alias in node.names):
            if not hasattr(module, name) and not importlib.util.find_spec(f"{node.module}.{name}"):
                yield f"{path.name}: {node.module}.{name}"


def test_the_package_has_what_is_imported() -> None:
    assert not [name for path in PROGRAMS for name in _missing(path)]
