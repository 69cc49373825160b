from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.models import mlp
from tests.schedule.legality.test_check_trace import WAVE
from tilewright.core.errors import Error, LegalityError
from tilewright.driver.tuning.build_worker import build, replaying
from tilewright.driver.tuning.extract_tasks import TuningTask, extract_tasks
from tilewright.driver.tuning.task_files import write_task
from tilewright.ir.loop.text import parse_func
from tilewright.runtime.load import load
from tilewright.target.host import host
from tilewright.tune.candidate import Candidate
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer, MeasureSettings

WORKER = (sys.executable, "-m", "tilewright.driver.tuning.build_worker")


@pytest.fixture
def task() -> TuningTask:
    return extract_tasks(mlp("N"), host(), sizes={"N": 6}).tasks[0]


@pytest.fixture
def job(tmp_path: Path, task: TuningTask) -> Job:
    return write_task(tmp_path / "task", task, host(), threads=1)


def _request(job: Job, trace: str | None, out: Path) -> dict[str, str | None]:
    return {"workload": str(job.workload), "trace": trace, "target": job.target, "out": str(out)}


def test_a_trace_becomes_a_model(tmp_path: Path, job: Job, task: TuningTask) -> None:
    made = {}
    for name, trace in {"none": None, "builtin": task.scheduled.builtin, "plain": ""}.items():
        assert build(_request(job, trace, tmp_path / name)) == {}
        with load(tmp_path / name) as model:
            (made[name],) = (s["rule"] for s in model.manifest["schedules"].values())
    assert made == {"none": task.about.kind, "builtin": "tuned", "plain": "tuned"}


def test_a_bad_trace_is_an_error(tmp_path: Path, job: Job) -> None:
    for trace in ("split(", 'split("nowhere", [?, 2])'):
        with pytest.raises(Error):
            build(_request(job, trace, tmp_path / "out"))


def test_a_trace_that_breaks_a_dependence_is_refused() -> None:
    func = parse_func(WAVE)
    assert replaying('split("j", [?, 4])')(func, frozenset(), host()).rule == "tuned"
    with pytest.raises(LegalityError):
        replaying('reorder("j", "i")')(func, frozenset(), host())


def test_candidates_are_measured(job: Job, task: TuningTask) -> None:
    traces = [task.scheduled.builtin, "", 'split("matmul.i1", [?, 4])', "split("]
    programs = [(Candidate((("trace", t),)), t) for t in traces]
    with Measurer(WORKER, MeasureSettings(builders=1)) as measurer:
        results = measurer.measure(job, programs)
        comparison = measurer.head_to_head(job, "", None)
    assert [bool(r.failure) for r in results] == [False, False, False, True]
    assert results[3].failure.startswith("refused")
    assert all(0 < r.seconds < 1 for r in results[:3])
    assert not comparison.failure
