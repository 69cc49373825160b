"""The page of a GPU is made of nothing but the figures; parts end when their time is over."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

GPU = Path(__file__).parents[2] / "benchmarks" / "gpu"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(GPU))
    import page

    return page


@pytest.fixture
def all_parts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(GPU))
    import all

    return all


def _beside(ours: float, torch: float) -> dict[str, Any]:
    row = {"ours_rotated": ours, "torch_rotated": torch, "ours_single": ours, "torch_single": torch}
    return {**row, "tflops": 500.0, "ratio": torch / ours, "difference": 1e-3}


def _model(name: str, ours: float | None, **peers: float) -> dict[str, Any]:
    mine = {"failure": "no"} if ours is None else {"ms": ours, "error": 1e-5, "compile_s": 2.5}
    return {
        "model": name,
        "batch": 1,
        "precision": "f32",
        "ours": mine,
        **{p: {"ms": ms, "call_ms": 2 * ms, "first_s": 9.0} for p, ms in peers.items()},
    }


def _figures() -> dict[str, Any]:
    times = {"tilewright": 0.1, "eager": 0.3, "inductor": 0.08, "copy": 0.07}
    parts = {
        "rows": {
            "softmax": {"ms": times, "of_copy": 0.7, "ratio": 0.8, "error": 1e-3},
            "failed": {"error": "RuntimeError: no"},
        },
        "products": {
            "rows": {"one": _beside(1.0, 2.0), "two": _beside(1.0, 0.9)},
            "shapes": {"x": {"right": True}, "y": {"right": False}},
        },
        "models1": [_model("resnet50", 1.0, eager=3.0, inductor=1.1), _model("lstm", None, jax=1)],
        "shapes": {"matmul": {"right": 99, "worst": 1e-6, "wrong": [[[1, 2, 3], "1e-2"]]}},
        "memcheck": {"summary": "0 errors", "kernels": 46, "failed": 0},
        "leaks": {"host": {"times": 10, "gpu": 0, "host": 4096, "right": True}},
    }
    found = {name: {"ended": "done", "figures": part} for name, part in parts.items()}
    found["models1"]["ended"] = "stopped after 290 s"
    return {"machine": "a machine, 580", "date": "2026-01-02", "parts": found}


def test_page_has_all_figures(page: ModuleType) -> None:
    text = page.page(_figures())
    for words in (
        "On a machine, 580, 2026-01-02.",
        "| softmax | 0.1 | 0.3 | 0.08 | 0.07 | 0.70 | 0.80 | 1e-03 |",
        "Below 1.0: softmax (0.80).",
        "| one | 1 | 2 | 500 | 2.00 | 1 | 2 | 1e-03 |",
        "Below 0.95: two (0.90).",
        "| resnet50 | 1 | f32 | 1 | 3 | 1.1 | 2.2 | – | 1.10 | 1e-05 |",
        "| lstm | 1 | f32 | – | – | – | – | 1 | – | – |",
        "Below 1.2: resnet50 1 f32 (1.10).",
        "| resnet50 | f32 | 2.5 | 9 | – |",
        "| matmul, f32 | 99 | 100 |",
        "| products, 16 bits | 1 | 2 |",
        "| memcheck | 46 | 0 | 0 errors |",
        "| host | 10 | 0 | 4096 |",
        "models1: stopped after 290 s",
    ):
        assert words in text


def test_page_of_nothing(page: ModuleType) -> None:
    assert "##" not in page.page({"parts": {}})


def test_a_part_ends_with_all_its_processes(all_parts: ModuleType, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    inner = f"import time; time.sleep(2); open({str(mark)!r}, 'w')"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    with (tmp_path / "log").open("w") as out:
        ended = all_parts.limited([sys.executable, "-c", outer], out, 1)
    assert ended == "stopped after 1 s"
    time.sleep(2)
    assert not mark.exists()


def test_parts_are_kept(
    all_parts: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "one.py"
    script.write_text(
        "import sys, json, pathlib\n"
        "pathlib.Path(sys.argv[-1]).write_text(json.dumps({'rows': {}, 'shapes': {}}))\n"
        "sys.exit(3)\n"
    )
    monkeypatch.setattr(all_parts, "PARTS", {"products": all_parts.Part(str(script), (), 20)})
    figures, told = tmp_path / "gpu.json", tmp_path / "gpu.md"
    figures.write_text('{"parts": {"leaks": {"ended": "done", "figures": {}}}}')
    given = ["all.py", "products", "--json", str(figures), "--page", str(told)]
    monkeypatch.setattr(sys, "argv", given)
    all_parts.main()
    assert '"leaks"' in figures.read_text()
    assert "products: status 3" in told.read_text()


def test_what_the_sanitizer_says(all_parts: ModuleType) -> None:
    said = "KERNELS 46 FAILED 1\n========= ERROR SUMMARY: 0 errors\n"
    assert all_parts.sanitized(said) == {"summary": "0 errors", "kernels": 46, "failed": 1}
    assert all_parts.sanitized("")["kernels"] == 0
