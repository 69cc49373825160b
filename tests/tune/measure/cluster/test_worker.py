from __future__ import annotations

import errno
import math
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from tests.tune.measure.fake_builder import ARGV
from tests.tune.measure.models import write_job
from tilewright.core.worker.process import Limits
from tilewright.target.host import host
from tilewright.tune.measure.cluster import worker as worker_module
from tilewright.tune.measure.cluster.job_bundle import pack
from tilewright.tune.measure.cluster.worker import Worker
from tilewright.tune.measure.evaluator import Effort
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import MeasureSettings
from tilewright.tune.target_key import target_text, versions

SETTINGS = MeasureSettings(1, 30, 30, Limits(2 << 30, 1 << 20), Effort(most=3), (5, 5), 1.0)


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return write_job(tmp_path_factory.mktemp("job"))


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker(ARGV[1:], asdict(SETTINGS))
    yield made
    assert list(made.close()) == [{}]


def test_it_says_what_it_is(worker: Worker) -> None:
    (described,) = worker.describe()
    assert described["target"] == target_text(host())
    assert described["versions"] == dict(versions())


def test_files_travel_once(worker: Worker, job: Job) -> None:
    first = list(worker.measure("key", pack(job), ["copy good", "refuse"], math.inf))
    assert [message["number"] for message in first] == [0, 1]
    assert first[0]["times"]
    assert [m["failure"].partition(":")[0] for m in first] == ["", "refused"]
    (again,) = worker.measure("key", None, ["copy wrong"], 1.0)
    assert again["failure"].startswith("wrong")


def test_comparisons(worker: Worker, job: Job) -> None:
    (comparison,) = worker.head_to_head("other", pack(job), "copy slow", None)
    assert comparison["number"] == 0
    assert comparison["ratio"] > 1
    models = [job.workload / f"{name}.tw" for name in ("good", "slow")]
    for _ in range(2):
        (comparison,) = worker.compare(pack(job, models), "good.tw", "slow.tw")
        assert comparison["ratio"] < 1
        assert not comparison["failure"]


def test_a_machine_without_room(worker: Worker, job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    (message,) = worker.measure("key", pack(job), ["large 2000000"], math.inf)
    assert "File too large" in message["problem"]

    def full(*_: Any) -> Job:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(worker_module, "unpack", full)
    for stream in (
        worker.measure("new", pack(job), ["copy good"], math.inf),
        worker.head_to_head("new", pack(job), None, None),
        worker.compare(pack(job, []), "", ""),
    ):
        (message,) = stream
        assert "No space left" in message["problem"]


def test_the_files_go_with_it(job: Job) -> None:
    made = Worker(ARGV[1:], asdict(SETTINGS))
    folder: Path = made._measurer.folder
    assert folder.is_dir()
    list(made.close())
    assert not folder.exists()
