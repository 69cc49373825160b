"""What counts as behind in random sweeps, and what their pages name."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import sweep_tables

    return sweep_tables


def _kept(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    from results_file import write_results

    write_results(folder / name, "a machine", results=rows)


def test_a_case_of_the_cpu_is_behind_unless_it_is_at_its_roof(tables: ModuleType) -> None:
    assert tables.is_behind({"ratio": 0.89})
    assert tables.is_behind({"ratio": 0.5, "of_roof": 0.8})
    assert not tables.is_behind({"ratio": 0.5, "of_roof": 0.91})
    assert not tables.is_behind({"ratio": 0.9})
    assert not tables.is_behind({"failures": {}})


def test_an_error_is_too_large_beside_torchs(tables: ModuleType) -> None:
    assert tables.is_far({"error": 1.6e-3, "torch_error": 1e-3})
    assert tables.is_far({"error": float("nan"), "torch_error": 1.0})
    assert not tables.is_far({"error": 1.4e-3, "torch_error": 1e-3})
    assert tables.is_far({"error": None, "torch_error": 1.0})
    assert not tables.is_far({"error": 9e-8, "torch_error": 0.0})


def test_the_cpus_page_weighs_kinds_alike_and_names_what_is_behind(
    tables: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    rows = [{"seed": 1, "kind": "conv", "case": "a", "ratio": r} for r in (4.0, 4.0, 4.0)]
    rows += [{"seed": 1, "kind": "pool", "case": "slow one", "ratio": 0.25}]
    rows += [{"seed": 1, "kind": "pool", "case": "not compared"}]
    _kept(tmp_path, "sweep-cascadelake.json", rows)
    text = tables.cpu_sweep()
    assert "| 1 | 4 | 1.00 | pool 0.25 | 1 | 0.25 |" in text
    assert "Behind: pool slow one 0.25." in text


def test_the_gpus_page_has_a_row_for_each_kind_and_seed(
    tables: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    right = {"error": 1e-3, "torch_error": 1e-3}
    rows = [
        {"seed": 7, "kind": "product", "case": name, "ratio": ratio, **right}
        for name, ratio in (("a", 4.0), ("b", 1.0), ("even", 0.9), ("slow one", 0.5))
    ]
    rows += [{"seed": 7, "kind": "conv", "case": "c", "ratio": 1.0, "error": 1, "torch_error": 0.1}]
    rows += [{"seed": 7, "kind": "conv", "case": "failed", "failure": "why"}]
    _kept(tmp_path, "sweep-h200.json", rows)
    text = tables.gpu_sweep()
    assert "| product | 7 | 4 | 1.16 | 50% | 1 | 0.50 | 0 |" in text
    assert "| conv | 7 | 1 | 1.00 | 100% | 0 | 1.00 | 1 |" in text
    assert "Behind: product slow one 0.50." in text
