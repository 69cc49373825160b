"""How samples of OpInfo are counted, and what the page says of them."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tilewright.core.errors import UnsupportedError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def opinfo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import opinfo

    return opinfo


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import opinfo_tables

    return opinfo_tables


def _reply(outcome: str, samples: int, why: str = "") -> dict[str, Any]:
    return {"samples": samples, "random": False, "host": False, "outcome": outcome, "why": why}


def test_samples_are_counted_by_their_outcome(opinfo: ModuleType) -> None:
    task = opinfo.Task(opinfo.Row("add", "float32", False), 6)
    task.take(_reply("right", 3), "")
    task.take(_reply("refused", 3, "first"), "")
    assert task.sample < task.samples
    task.take(_reply("refused", 3, "second"), "")
    assert task.sample == task.samples
    assert task.row.outcomes == {"right": 1, "refused": 2}
    assert task.row.why == {"refused": "first"}


def test_an_operator_without_samples_counts_nothing(opinfo: ModuleType) -> None:
    task = opinfo.Task(opinfo.Row("add", "float32", False), 6)
    task.take({"samples": 0}, "")
    assert task.sample >= task.samples
    assert not task.row.outcomes


def test_a_process_that_dies_costs_its_sample(opinfo: ModuleType) -> None:
    task = opinfo.Task(opinfo.Row("add", "float32", False), 6)
    task.take({}, "crashed: SIGSEGV")
    assert task.sample < task.samples  # nobody has said how many there are
    task.take(_reply("right", 2), "")
    assert task.sample == task.samples
    assert task.row.outcomes == {"crashed": 1, "right": 1}
    task.take({}, "timeout: no answer in 9 s")
    assert task.row.outcomes["timeout"] == 1


def test_a_run_goes_on_where_one_of_the_same_commit_ended(
    opinfo: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from dataclasses import asdict

    path = tmp_path / "opinfo.json"
    assert opinfo.known(path) == ([], 0.0)
    row = opinfo.Row("add", "float32", True, outcomes={"right": 2})
    opinfo.write_results(path, "z80", torch="2.13.0", minutes=1.5, results=[asdict(row)])
    assert opinfo.known(path) == ([row], 1.5)
    monkeypatch.setattr(opinfo, "commit", lambda: "def")
    with pytest.raises(SystemExit, match="this is def"):
        opinfo.known(path)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import opinfo_worker

    return opinfo_worker


@pytest.mark.parametrize(
    ("error", "in_parts", "made", "outcome"),
    [
        (UnsupportedError("torch.operator", "no"), "right", 1, "parts"),
        (UnsupportedError("torch.operator", "no"), "right", 0, "refused"),
        (UnsupportedError("torch.operator", "no"), "else", 1, "wrong"),
        (UnsupportedError("torch.operator", "no"), ValueError("x"), 1, "failed"),
        (UnsupportedError("torch.operator", "no"), UnsupportedError("a", "b"), 0, "refused"),
        (AssertionError("gives f32"), "right", 1, "failed"),
    ],
)
def test_what_is_not_compiled_whole_is_told_apart(
    worker: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    error: Exception,
    in_parts: str | Exception,
    made: int,
    outcome: str,
) -> None:
    from tilewright.compat import torch_backend

    case = worker.Case(None, None, None, False)
    monkeypatch.setattr(torch_backend, "compile", lambda graph: graph)
    monkeypatch.setattr(case, "compiled", lambda backend, **options: backend)
    monkeypatch.setattr(case, "run", lambda function, seed: function)

    def different(function: str, right: str) -> str:
        for graph in range(made):
            torch_backend.compile(graph)
        if isinstance(in_parts, Exception):
            raise in_parts
        return "" if in_parts == right else "they differ"

    monkeypatch.setattr(case, "different", different)
    assert case.in_parts(error, "right")["outcome"] == outcome


@pytest.fixture
def compare(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import opinfo_compare

    return opinfo_compare


def test_results_may_differ_by_the_tolerances_of_their_own_types(compare: ModuleType) -> None:
    import torch

    right = [torch.tensor([1.0, 2.0]), torch.tensor([1, 2])]
    near = [torch.tensor([1.0, 2.000001]), torch.tensor([1, 2])]
    assert compare.differences(near, right) == ""
    assert not compare.is_same(near, right)
    assert compare.is_same([torch.tensor([torch.nan])], [torch.tensor([torch.nan])])
    assert "result 1" in compare.differences([near[0], right[1] + 1], right)
    assert "result 0" in compare.differences([near[0] + 0.01, right[1]], right)
    assert compare.differences([near[0] + 0.01, right[1]], right, (0.1, 0.0)) == ""
    assert compare.differences(near[:1], right) == "1 results for 2"


def test_results_may_be_as_far_from_f64_as_eagers_are(compare: ModuleType) -> None:
    import torch

    exact = [torch.tensor([1.0, 2.0], dtype=torch.float64)]
    right = [torch.tensor([1.0, 2.1])]
    assert compare.is_as_exact([torch.tensor([1.1, 2.0])], right, exact)
    assert not compare.is_as_exact([torch.tensor([1.2, 2.0])], right, exact)
    assert not compare.is_as_exact([torch.tensor([torch.nan, 2.0])], right, exact)
    assert not compare.is_as_exact([torch.tensor([1.0, 2.0, 3.0])], right, exact)
    assert not compare.is_as_exact([torch.tensor([1])], [torch.tensor([2])], [torch.tensor([1])])


def test_of_equal_elements_any_may_be_named(compare: ModuleType) -> None:
    import torch

    x = torch.tensor([[3, 1, 3], [2, 2, 0]])
    sample = SimpleNamespace(input=x, args=(1,), kwargs={"dim": 1})
    first, last, other = (torch.tensor(rows) for rows in ([0, 0], [2, 1], [1, 0]))
    values = torch.tensor([3, 2])
    assert compare.is_same(*(compare.pointed_at(sample, [values, i]) for i in (first, last)))
    assert not compare.is_same(*(compare.pointed_at(sample, [values, i]) for i in (first, other)))


def _row(op: str, dtype: str, outcomes: dict[str, int], **more: bool) -> dict[str, Any]:
    flags = {"backward": False, "random": False, "host": False, **more}
    return {"op": op, "dtype": dtype, **flags, "outcomes": outcomes, "why": {}}


def test_the_page_counts_what_torch_traces(
    tables: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from results_file import write_results

    monkeypatch.setattr(tables, "FOLDER", tmp_path)
    rows = [
        _row("add", "float32", {"right": 3, "untraced": 2}),
        _row("svd", "float32", {"refused": 1}),
        _row("qr", "float32", {"untraced": 6}),
        _row("add", "bool", {"wrong": 1}),
        _row("rand", "float32", {"right": 1, "parts": 1}, random=True),
        _row("add", "float32", {"right": 1}, backward=True),
        _row("inv", "float32", {"right": 2}, host=True),
    ]
    path = tmp_path / "opinfo.json"
    write_results(path, "a machine", minutes=7, torch="2.13.0", results=rows)
    text = tables.opinfo()
    assert "| forward | float32 | 2 | 4 | 3 | 0 | 1 | 0 | 0 | 0 | 0 | 75.0% |" in text
    assert "| forward | bool | 1 | 1 | 0 | 0 | 0 | 1 | 0 | 0 | 0 | 0.0% |" in text
    assert "| forward, random results | float32 | 1 | 2 | 1 | 1 |" in text
    assert "| forward, by LAPACK | float32 | 1 | 2 | 2 |" in text
    assert "| backward | float32 | 1 | 1 | 1 |" in text
    assert "Wrong, at least one sample: add." in text
    assert "torch 2.13.0; a machine" in text
