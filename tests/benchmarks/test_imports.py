"""Programs beside the package that no test runs import names that it has."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ON_A_GPU = [*(ROOT / "benchmarks" / "gpu").glob("*.py")]
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


def _private(path: Path) -> Iterator[str]:
    """Attributes that are a class's own, of other values than `self` and torch's modules."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_"):
            continue
        value = node.value
        while isinstance(value, ast.Attribute):
            value = value.value
        of_torch = isinstance(value, ast.Name) and value.id in ("torch", "self", "cls")
        direct = not isinstance(node.value, ast.Attribute)
        if not node.attr.startswith("__") and not (of_torch and (direct or value.id == "torch")):
            yield f"{path.name}:{node.lineno}: {node.attr}"


def test_programs_that_ci_cannot_run_use_no_private_attributes() -> None:
    assert not [found for path in ON_A_GPU for found in _private(path)]
