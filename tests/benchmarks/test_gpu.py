"""The page of a GPU is made of nothing but the figures; parts end when their time is over."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tilewright

GPU = Path(__file__).parents[2] / "benchmarks" / "gpu"


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(GPU.parent))
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


def _model(ours: float | None, **peers: float) -> dict[str, Any]:
    mine = {"ms": ours, "error": 1e-5, "compile_s": 2.5} if ours else {"failure": "no\nmore"}
    others = {p: {"ms": ms, "call_ms": 2 * ms, "compile_s": 9.0} for p, ms in peers.items()}
    return {"ours": mine, **others}


def _figures() -> dict[str, Any]:
    times = {"tilewright": 0.1, "eager": 0.3, "inductor": 0.08, "copy": 0.07}
    parts = {
        "rows": {
            "softmax": {"ms": times, "bytes": 7e7, "tb_s": 0.7, "ratio": 0.8, "error": 1e-3},
            "failed": {"error": "RuntimeError: no"},
        },
        "products": {
            "rows": {"one": _beside(1.0, 2.0), "two": _beside(1.0, 0.9)},
            "shapes": {"x": {"right": True}, "y": {"right": False}},
        },
        "integers": {"shapes": {"x": {"right": True}}},
        "models": {
            "resnet50 32 f32": {"ours": {"ms": 4.0, "error": float("nan")}},
            "resnet50 1 f32": _model(1.0, eager=3.0, inductor=1.1),
            "lstm 1 fp16": _model(None, jax=1),
        },
        "cold": {"bert_base 1 fp16": _model(1.0, inductor=2.0)},
        "shapes": {"matmul, f32": {"right": 99, "worst": 1e-6, "wrong": [[[1, 2, 3], "1e-2"]]}},
        "memcheck": {"summary": "0 errors", "kernels": 46, "failed": 0},
        "leaks": {"host": {"times": 10, "gpu": 0, "host": 4096, "right": True}},
    }
    found = {name: {"ended": "done", "figures": part} for name, part in parts.items()}
    found["models"]["ended"] = "stopped after 290 s"
    for part in found.values():
        part |= {"date": "2026-01-02", "commit": "abc"}
    found["leaks"] |= {"date": "2026-01-01", "commit": "", "kept_in": "def"}
    about = {"machine": "a machine, 580", "date": "2026-01-02", "commit": "abc"}
    return {**about, "parts": found}


def test_page_has_all_figures(page: ModuleType) -> None:
    text = page.page(_figures())
    for words in (
        "On a machine, 580, 2026-01-02, commit abc. Measured at other times: leaks (2026-01-01,",
        " before commit def).",
        "| softmax | 0.1 | 0.3 | 0.08 | 0.07 | 0.70 | 0.80 | 1e-03 |",
        "the fastest copy of this run, 1.00 TB/s",
        "Below 1.0: softmax (0.80).",
        "| one | 1 | 2 | 500 | 2.00 | 1 | 2 | 1e-03 |",
        "Below 0.95: two (0.90).",
        "| resnet50 | 1 | f32 | 1 | 6 | 3 | 2.2 | 1.1 | – | 1.10 | 1e-05 | – |\n| resnet50 | 32 |",
        "| lstm | 1 | fp16 | – | – | – | – | – | 1 | – | – | – |",
        "Below 1.2: resnet50 1 f32 (1.10).",
        "Wrong: resnet50 32 f32.",
        "lstm 1 fp16, ours: no more",
        "| resnet50 | 1 | f32 | 2.5 | 9 | – |",
        "| bert_base | 1 | fp16 | 2.5 | 9 | – |",
        "| matmul, f32 | 99 | 100 |",
        "| GEMM, 16 bits | 1 | 2 |",
        "| GEMM, 8 bits | 1 | 1 |",
        "| memcheck | 46 | 0 | 0 errors |",
        "| host | 10 | 0 | 4096 |",
        "models: stopped after 290 s",
    ):
        assert words in text


def test_errors_of_16_bits_are_judged_by_the_peer(page: ModuleType) -> None:
    row = {"ours": {"error": 2e-2}, "eager": {}, "inductor": {"error": 1.5e-2}}
    assert page.is_right("gpt2 1 fp16", row)
    assert not page.is_right("gpt2 1 f32", {**row, "inductor": {"error": 1e-7}})
    file = {"ours": {"error": 2e-2}, "eager": {"absent": "no module"}}
    assert page.is_right("magika 1 fp16", file)
    assert not page.is_right("magika 1 f32", file)
    touchy = {"ours": {"error": 0.09, "rounding": 0.05}, "eager": {"absent": ""}}
    assert page.is_right("ocr 32 fp16", touchy)
    assert not page.is_right("ocr 32 fp16", {**touchy, "ours": {"error": 0.11, "rounding": 0.05}})


def test_page_of_nothing(page: ModuleType) -> None:
    assert "##" not in page.page({"date": "2026-01-02", "commit": "abc", "parts": {}})


def test_the_page_is_that_of_the_results(page: ModuleType) -> None:
    from results_file import FOLDER, read_results

    written = (GPU.parents[1] / "docs" / "results" / "gpu.md").read_text()
    assert written == page.page(read_results(FOLDER / "gpu.json")), "run benchmarks/gpu/all.py page"


def test_a_row_with_one_peer_counts_in_no_mean(page: ModuleType) -> None:
    figures = _figures()
    figures["parts"]["models"]["figures"]["magika 1 f32"] = _model(1.0, jax=7.0)
    text = page.page(figures)
    assert "JAX is the\nonly other engine in 2 of 4 rows" in text
    assert "| (7.00) |" in text


def test_a_part_ends_with_all_its_processes(all_parts: ModuleType, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    inner = f"import time; time.sleep(2); open({str(mark)!r}, 'w')"
    outer = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {inner!r}])"
    with (tmp_path / "log").open("w") as out:
        ended = all_parts.limited([sys.executable, "-c", outer], out, 1, lambda: None)
    assert ended == "stopped after 1 s"
    time.sleep(2)
    assert not mark.exists()


def test_a_part_ends_with_this_process(
    all_parts: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(all_parts, "TOLD_EVERY", 0.1)
    sleeping = [sys.executable, "-c", "import time; time.sleep(60)"]
    with (tmp_path / "log").open("w") as out:
        ended = all_parts.limited(sleeping, out, 50, all_parts.STOPPED.set)
    all_parts.STOPPED.clear()
    assert ended == "interrupted"


WRITING = """
import sys, json, pathlib, time
path = pathlib.Path(sys.argv[-1])
before = json.loads(path.read_text()) if path.exists() else {}
path.write_text(json.dumps(before | {'rows': {}, 'shapes': {}}))
"""


def _run(module: ModuleType, monkeypatch: pytest.MonkeyPatch, *given: object) -> None:
    monkeypatch.setattr(sys, "argv", ["all.py", *map(str, given)])
    module.main()


def test_parts_are_kept(
    all_parts: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "one.py"
    script.write_text(f"{WRITING}sys.exit(3)\n")
    part = all_parts.Part(str(script), (), 20)
    added = all_parts.Part(str(script), (), 20, adds=True)
    monkeypatch.setattr(all_parts, "PARTS", {"products": part, "models": added})
    figures, told = tmp_path / "gpu.json", tmp_path / "gpu.md"
    about = {"date": "2026-01-01", "commit": "abc"}
    earlier = {**about, "ended": "done", "figures": {"lstm 1 f32": {}}}
    parts = dict.fromkeys(("leaks", "products", "models"), earlier)
    figures.write_text(json.dumps({"parts": parts}))
    _run(all_parts, monkeypatch, "products", "--json", figures, "--page", told)
    kept = json.loads(figures.read_text())["parts"]
    assert kept["leaks"] == earlier
    assert kept["products"]["date"] == json.loads(figures.read_text())["date"] > "2026"
    assert kept["products"]["figures"] == {"rows": {}, "shapes": {}}
    assert "products: status 3" in told.read_text()
    given = Namespace(models="lstm,dlrm", precisions="fp16", missing=True)
    command = all_parts._narrowed("models", given).arguments
    assert command[:5] == ("lstm", "dlrm", "--precisions", "fp16", "--missing")
    monkeypatch.setattr(all_parts, "_narrowed", lambda name, given: added)
    monkeypatch.setattr("page.page", lambda figures: "")
    _run(all_parts, monkeypatch, "models", "--json", figures, "--page", told)
    kept = json.loads(figures.read_text())["parts"]
    assert kept["models"]["figures"].keys() == {"lstm 1 f32", "rows", "shapes"}


def test_what_is_not_timed_runs_side_by_side(
    all_parts: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert all_parts.side_by_side(all_parts.PARTS)[-2:] == [
        ["leaks"],
        ["shapes", "memcheck", "racecheck", "synccheck"],
    ]
    script = tmp_path / "meets.py"
    script.write_text(f"""{WRITING}
here, other = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
here.touch()
while not other.exists():
    time.sleep(0.05)
""")
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    parts = {
        "rows": all_parts.Part(str(script), (first, second), 20, timed=False),
        "leaks": all_parts.Part(str(script), (second, first), 20, timed=False),
    }
    monkeypatch.setattr(all_parts, "PARTS", parts)
    monkeypatch.setattr("page.page", lambda figures: "")
    figures = tmp_path / "gpu.json"
    _run(all_parts, monkeypatch, "--json", figures, "--page", tmp_path / "gpu.md")
    assert [p["ended"] for p in json.loads(figures.read_text())["parts"].values()] == ["done"] * 2


def test_figures_are_kept_while_a_part_runs(
    all_parts: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "one.py"
    script.write_text(f"{WRITING}time.sleep(60)\n")
    monkeypatch.setattr(all_parts, "TOLD_EVERY", 0.2)
    kept: list[dict[str, Any]] = []
    part = all_parts.Part(str(script), (), 2)
    all_parts.measure(part, tmp_path / "log", {}, kept.append)
    assert {"rows": {}, "shapes": {}} in [found["figures"] for found in kept[:-1]]
    assert kept[-1]["ended"] == "stopped after 2 s"


def test_what_the_sanitizer_says(all_parts: ModuleType) -> None:
    said = "KERNELS 46 FAILED 1\n========= ERROR SUMMARY: 0 errors\n"
    assert all_parts.sanitized(said) == {"summary": "0 errors", "kernels": 46, "failed": 1}
    assert all_parts.sanitized("")["kernels"] == 0


@pytest.mark.parametrize("zeros", [("none", "each"), ("each", "one")])
def test_products_of_integers_are_known_exactly(
    zeros: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(GPU))
    import integers

    case = integers.Case(3, 5, 17, "u8", "i8", *zeros, constant=zeros[0] == "none")
    model = tilewright.compile(integers.model_of(case), cache=False)
    np.testing.assert_array_equal(model(*integers.inputs(case)), integers.expected(case))


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(GPU))
    import models

    return models


ONE_MODEL = """
import json, pathlib, sys, time
name, path = sys.argv[1], pathlib.Path(sys.argv[-1])
path.write_text(json.dumps({f'{name} 1 f32': {'ours': {'ms': 1.0}}}))
if name == 'crashes': sys.exit('broken')
if name == 'hangs': time.sleep(60)
path.write_text(json.dumps({f'{name} 1 f32': {'ours': {'ms': 1.0}, 'eager': {'ms': 2.0}}}))
"""


def test_a_model_that_fails_costs_itself(
    models: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "one_model.py").write_text(ONE_MODEL)
    monkeypatch.setattr(models, "HERE", tmp_path)
    runner = models.Runner(tmp_path, ["f32"], ["ours", "eager"], 2)
    before = {"good 1 f32": {"jax": {"ms": 3.0}}}
    jobs = [("good", 1), ("crashes", 1), ("hangs", 1)]
    rows = models.measure_all(runner, jobs, 3, before, tmp_path / "rows.json")
    assert rows == json.loads((tmp_path / "rows.json").read_text())
    mine = {"ms": 1.0}
    assert rows["good 1 f32"] == {"jax": {"ms": 3.0}, "ours": mine, "eager": {"ms": 2.0}}
    assert rows["crashes 1 f32"] == {"ours": mine, "eager": {"failure": "status 1: broken"}}
    assert rows["hangs 1 f32"]["eager"]["failure"].startswith("stopped after 2 s")
    assert models.is_known(rows, ("good", 1), ["f32"], ["ours", "jax"])
    assert not models.is_known(rows, ("good", 1), ["f32", "fp16"], ["ours"])


def test_the_most_telling_models_come_first(models: ModuleType) -> None:
    jobs = models.in_order(["lstm", "resnet50"], [1, 32])
    assert jobs == [("resnet50", 1), ("resnet50", 32), ("lstm", 1), ("lstm", 32)]


def test_tuning_keeps_what_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("gpu_tuning", GPU / "tuning.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)

    def fails(*_: object) -> None:
        raise ValueError("no such thing")

    def asked(model: str, name: str, out: Path, limit: float, report: Any) -> None:
        assert 0 < limit <= 60 * program.PEER_SHARE
        report.note(model, **{f"{name}_ms": 2.0})

    monkeypatch.setattr(program, "ours", fails)
    monkeypatch.setattr(program, "ask_peer", asked)
    out = tmp_path / "out"
    monkeypatch.setattr(sys, "argv", ["tuning.py", "--minutes", "1", "--out", str(out), "llama"])
    program.main()
    known = json.loads((out / "tuning.json").read_text())["llama"]
    assert known["ours_failed"] == "ValueError: no such thing"
    assert known["eager_ms"] == known["autotune_ms"] == 2.0
    assert "llama: eager_ms 2.0000" in capsys.readouterr().out
    again = program.Report(out)
    again.note("llama", gain=1.5)
    assert again.figures["llama"].keys() >= {"eager_ms", "gain"}
