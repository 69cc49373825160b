"""The page is made of nothing but the figures."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import report

    return report


@pytest.fixture
def engine_rows(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import engine_rows

    return engine_rows


def _row(model: str, engine: str, ms: float, **more: Any) -> dict[str, Any]:
    return {
        "model": model,
        "engine": engine,
        "threads": 2,
        "min_ms": ms,
        "median_ms": ms * 1.1,
        "others": 0.02,
        "error": 1e-6,
        **more,
    }


def _figures() -> dict[str, Any]:
    kernels = [
        {"name": "k", "calls": 1, "min_ms": 1.0, "of_roof": 0.5, "bound": "compute", "places": []},
        {"name": "l", "calls": 2, "min_ms": 3.0, "of_roof": 0.9, "bound": "L2", "places": []},
    ]
    return {
        "date": "2026-01-01",
        "commit": "abc",
        "machine": {
            "cpu": "z80",
            "architecture": "x86_64",
            "description": "a small machine",
            "packages": {"numpy": "2"},
        },
        "results": [
            _row("net", "tilewright", 2.0, kernels=kernels, compile_s=3.0, load_s=0.1, run_mb=50),
            _row("net", "onnxruntime", 3.0),
            _row("net", "jax", 0.01, error=float("inf")),
            _row("net", "openvino-default", 1.0, error=1e-2),
            _row("net", "tilewright-bf16", 0.9),
            _row("net", "tilewright-fp16", 0.5, error=1e-3),
            {"model": "net", "engine": "iree", "threads": 2, "failure": "RuntimeError: no"},
            _row("kernels/add", "tilewright", 0.00612),
            _row("kernels/add", "openvino", 0.003),
        ],
    }


def test_ratios_are_to_engines_that_work_in_f32(engine_rows: ModuleType) -> None:
    ratios = engine_rows.best_ratio(_figures()["results"])
    assert ratios["net"] == 1.5
    assert ratios["kernels/add"] == pytest.approx(0.49, abs=0.01)


def test_the_share_of_the_roof_weighs_kernels_by_time(engine_rows: ModuleType) -> None:
    ours = _figures()["results"][0]
    assert engine_rows.of_roof(ours) == pytest.approx((0.5 + 2.7) / 4)
    assert engine_rows.of_roof({}) is None


def test_a_model_counts_only_beside_two_other_engines(engine_rows: ModuleType) -> None:
    models = engine_rows.by_model(_figures()["results"])
    assert engine_rows.counted(models) == {}
    models["net"]["openvino"] = _row("net", "openvino", 4.0)
    assert engine_rows.counted(models) == {"net": 1.5}
    assert engine_rows.means(models) == (
        "Geometric mean of the ratios: 1.50 over 1 (not counted, with fewer than 2 other engines: "
        "add); slower than the best other: none."
    )


def test_wrong_answers_are_listed(report: ModuleType, engine_rows: ModuleType) -> None:
    wrong = [*_figures()["results"], _row("net", "tvm", 1.0, error=2.0)]
    wrong.append(_row("net", "iree", 0.1, error=None))  # as a record has what is not finite
    text = report.failures(wrong)
    assert "| net | jax | wrong: error inf |" in text
    assert "| net | tvm | wrong: error 2e+00 |" in text
    assert "| net | iree | wrong: error not finite |" in text
    assert not {"iree", "jax", "tvm"} & engine_rows.by_model(wrong)["net"].keys()


def test_page(report: ModuleType) -> None:
    figures = _figures()
    figures["dynamic"] = [{"model": "net", "engine": "e", "static_ms": 2.0, "dynamic_ms": 3.0}]
    figures["calls"] = [{"how": "from C", "min_us": 0.5, "median_us": 0.6}]
    figures["compile"] = [
        dict.fromkeys(("cold_s", "cached_s", "file_mib", "peak_mib"), 1.0)
        | {"model": "net", "kernels": 3, "steps": 4}
    ]
    page = report.page_text(figures)
    assert "| net | 2.00 | 3.00 (ONNX Runtime) | 1.50 | 80% | 3.0 / 0.10 | 50 / – | 1e-06 |" in page
    assert "| net | 0.5 (fp16) | 1.00 | 2.00 | 1e-03 | 1e-02 |" in page
    assert "| net | iree | RuntimeError: no |" in page
    engines = "| **0.5** | 1.00 | 1.50 |"  # in a lower precision, then the ratio
    assert f"| net | 2.00 | 3.00 | wrong | failed | 0.9 {engines}" in page
    assert "| net | e | 2.00 | 3.00 | 1.50 |" in page
    assert "| from C | 0.50 | 0.60 |" in page
    assert "| net | 1.00 | 1.00 | 1 | 1 | 3 | 4 |" in page
    assert "numpy 2" in page
    assert "Measured at commit abc." in page


def test_runs_are_merged_and_kept(
    report: ModuleType, engine_rows: ModuleType, tmp_path: Path
) -> None:
    later = _figures()
    later["results"] = [_row("net", "onnxruntime", 9.0)]
    merged = report.merge([_figures(), later])
    assert engine_rows.by_model(merged["results"])["net"]["onnxruntime"]["min_ms"] == 9
    path = report.record(merged, tmp_path)
    assert path.name == "2026-01-01-z80.json"
    assert '"of_roof": 0.5' in path.read_text()
    assert "places" not in path.read_text()
    later["commit"] = "def"
    with pytest.raises(SystemExit, match="different commits"):
        report.merge([_figures(), later])
    later["machine"] = {"cpu": "6502"}
    with pytest.raises(SystemExit, match="different machines"):
        report.merge([_figures(), later])


def test_each_kind_of_processor_has_the_page_of_its_newest_record(report: ModuleType) -> None:
    newest = report.newest()
    pages = {path.stem: path.read_text() for path in report.PAGES.glob("speed-*.md")}
    assert pages == {f"speed-{kind}": report.page_text(one) for kind, one in newest.items()}
    assert "aarch64" in newest


def test_the_newest_record_of_each_kind(
    report: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for date, cpu, kind in (
        ("2026-01-02", "z80", "x86_64"),
        ("2026-01-03", "arm2", "aarch64"),
        ("2026-01-01", "z80", "x86_64"),
    ):
        machine = {"cpu": cpu, "architecture": kind, "description": cpu}
        report.record({**_figures(), "date": date, "machine": machine}, tmp_path)
    newest = report.newest(tmp_path)
    assert {kind: one["date"] for kind, one in newest.items()} == {
        "x86_64": "2026-01-02",
        "aarch64": "2026-01-03",
    }
    command = ["report.py", "--results", str(tmp_path), "--pages", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", command)
    report.main()
    assert "# Speed on x86_64" in (tmp_path / "speed-x86_64.md").read_text()
    assert "arm2, 2026-01-03" in (tmp_path / "speed-aarch64.md").read_text()


def test_nothing_is_left_on_the_path() -> None:
    assert str(BENCHMARKS) not in sys.path
