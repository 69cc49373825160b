"""Tuning for a GPU on a machine that has none: everything but the clock is real."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from random import Random

import numpy as np
import pytest

import tilewright as tw
from tests.cli.invoke import fail, succeed, succeed_json
from tests.driver.tuning.fakes import RANDOM, database, use_fakes
from tests.models import mlp, save
from tests.runtime.cuda.fake_driver import FakeDriver
from tilewright.core.errors import LegalityError
from tilewright.core.host import cuda_device
from tilewright.driver.compile_graph import compile_source, lower
from tilewright.driver.options import CompileOptions, make_options
from tilewright.driver.tuning import task_files
from tilewright.driver.tuning.build_worker import build, replaying
from tilewright.driver.tuning.end_to_end import TuningModel
from tilewright.driver.tuning.extract_tasks import TuningTask, extract_tasks
from tilewright.driver.tuning.session import SearchSettings, TuningSession
from tilewright.driver.tuning.task_files import read_task, write_task
from tilewright.runtime.container import Container
from tilewright.runtime.cuda.executable import CudaExecutable
from tilewright.target.registry import GPUS
from tilewright.tune.measure import gpu_stopwatch, run_worker
from tilewright.tune.measure.evaluator import Effort
from tilewright.tune.measure.measurer import described
from tilewright.tune.records import Records
from tilewright.tune.space.constructed import ConstructedSpace
from tilewright.tune.space.variation import sample
from tilewright.tune.target_key import target_text

H200 = GPUS["sm_90a"]
NAME = "cuda -arch=sm_90a"


@pytest.fixture(scope="module")
def tasks() -> list[TuningTask]:
    return extract_tasks(mlp(8, 64, 96, 40), H200).tasks


def _tuned(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Records of a session for a GPU whose measurer is a formula."""
    use_fakes(monkeypatch)
    model = TuningModel(mlp(8, 64, 96, 40), H200, {}, "f32", {}, 0)
    settings = SearchSettings(trials=40, batch=4, method=RANDOM)
    with Records(database(folder)) as records:
        report = TuningSession(model, records, settings).run()
        assert {record.target for record in records} == {target_text(H200)}
    assert report.trials == 40
    assert not report.skipped
    return database(folder)


def test_records_of_a_gpu_serve_machines_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _tuned(tmp_path, monkeypatch)
    merged = tmp_path / "merged.db"
    assert "new records" in succeed("records", "merge", merged, path)
    rows = succeed_json("records", "show", merged)
    assert {row["cpu"] for row in rows} == {"sm_90a"}
    build = lower(mlp(8, 64, 96, 40), make_options(NAME, tuned=merged))
    rules = [step.kernel.rule for step in build.steps]
    assert "tuned" in rules
    with tw.compile(mlp(8, 64, 96, 40), target=NAME, tuned=merged, cache=False) as tuned:
        assert "tuned" in tuned.explain()
    # those of an H200 say nothing of another GPU, nor of processors
    for other in ("cuda -arch=sm_80", "native"):
        found = lower(mlp(8, 64, 96, 40), make_options(other, tuned=merged))
        assert "tuned" not in [step.kernel.rule for step in found.steps]


def test_nearest_workloads_are_finalized_for_the_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _tuned(tmp_path, monkeypatch)
    options = make_options(NAME, tuned=path, nearest_workload=True)
    notes = [s.kernel.scheduled.note for s in lower(mlp(16, 64, 96, 40), options).steps]
    assert any("nearest" in note or "does not replay" in note for note in notes)


def test_a_gpu_without_one_here_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = save(mlp(3), tmp_path / "m.onnx")
    monkeypatch.setattr(cuda_device, "cuda_device", lambda: None)
    given = ("tune", model, "--target", NAME, "--db", tmp_path / "r.db")
    fail(*given, code="tune.no-gpu")
    assert not (tmp_path / "r.db").exists()
    monkeypatch.setattr(cuda_device, "cuda_device", lambda: "some GPU")
    fail(*given, "--threads", 2, code="tune.threads")


def test_kernels_are_tasks_with_expected_values(tmp_path: Path, tasks: list[TuningTask]) -> None:
    assert {task.about.kind for task in tasks} >= {"gpu.gemm"}
    for number, task in enumerate(tasks):
        job = write_task(tmp_path / str(number), task, H200)
        assert job.target == target_text(H200)
        assert len(job.expected) == len(task.graph.outputs)
        assert read_task(job.workload)[0].outputs == task.graph.outputs


def test_what_is_rounded_may_be_off_by_more() -> None:
    assert task_files.ROUNDED["tf32"]["f32"] > task_files.TOLERANCE["f32"]


def test_candidates_become_models_of_the_gpu(tmp_path: Path, tasks: list[TuningTask]) -> None:
    task = next(t for t in tasks if t.about.kind == "gpu.gemm")
    job = write_task(tmp_path / "t", task, H200)
    scheduled = task.scheduled
    space = ConstructedSpace(scheduled.func, scheduled.constants, H200)
    trace = space.trace(space.default())
    assert trace == scheduled.builtin
    for checked in (True, False):
        request = {"workload": str(job.workload), "trace": trace, "target": job.target}
        build({**request, "out": str(tmp_path / "c.tw"), "checked": checked})
        assert b".entry" in (tmp_path / "c.tw").read_bytes()


def test_the_built_in_schedule_is_not_checked(
    tmp_path: Path, tasks: list[TuningTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tilewright.schedule.legality import check_trace

    def refuse(*_: object) -> None:
        raise LegalityError("legality.order", "asked")

    monkeypatch.setattr(check_trace, "check_trace", refuse)
    task = next(t for t in tasks if t.about.kind == "gpu.gemm")
    job = write_task(tmp_path / "t", task, H200)
    about = {"workload": str(job.workload), "target": job.target, "out": str(tmp_path / "c.tw")}
    assert build({**about, "trace": task.scheduled.builtin}) == {}
    space = ConstructedSpace(task.scheduled.func, task.scheduled.constants, H200)
    drawn = [c for n in range(20) if (c := sample(space, Random(n))) is not None]
    other = next(t for t in map(space.trace, drawn) if t != task.scheduled.builtin)
    with pytest.raises(LegalityError):
        build({**about, "trace": other})


def test_unchecked_traces_are_not_refused() -> None:
    from tests.schedule.legality.test_check_trace import WAVE
    from tilewright.ir.loop.text import parse_func

    wrong = 'reorder("j", "i")'
    with pytest.raises(LegalityError):
        replaying(wrong)(parse_func(WAVE), frozenset(), H200)
    assert replaying(wrong, False)(parse_func(WAVE), frozenset(), H200).rule == "tuned"


def test_the_run_worker_measures_on_the_gpu(
    tmp_path: Path, tasks: list[TuningTask], monkeypatch: pytest.MonkeyPatch
) -> None:
    task = next(t for t in tasks if t.about.kind == "gpu.gemm")
    job = write_task(tmp_path / "t", task, H200)
    artifact = compile_source(task.graph, CompileOptions(H200, task.precision))
    artifact.write(tmp_path / "m.tw")
    driver = FakeDriver(artifact.build, interpret=False)
    monkeypatch.setattr(gpu_stopwatch, "MAX_RUNS", 2)

    def opened(container: Container) -> CudaExecutable:
        return CudaExecutable(container, driver)

    monkeypatch.setattr(run_worker, "open_model", opened)
    effort = {"effort": asdict(Effort(least=2, most=3)), "incumbent": None}
    request = {**described(job), "models": [str(tmp_path / "m.tw")], **effort}
    reply = run_worker.run(request)
    assert not reply.get("failure")
    assert len(reply["times"][0]) >= 2
    assert all(seconds > 0 for seconds in reply["times"][0])
    assert {k: v for k, v in driver.live.items() if v} == {}
    wrong = np.load(job.expected[0]) + 1
    np.save(job.expected[0], wrong)
    assert run_worker.run(request)["failure"].startswith("wrong")
