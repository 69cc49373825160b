"""A real cluster of Ray on this machine, with two workers."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import pytest

from tests.core.worker.processes import is_alive, until
from tests.for_each import for_each
from tests.tune.measure.fake_builder import ARGV
from tests.tune.measure.local_cluster import local_cluster, worker_pids
from tests.tune.measure.models import write_job
from tilewright.core.errors import ConfigError, TuneError
from tilewright.core.worker.process import Limits
from tilewright.target.host import host
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.measure.cluster.measurer import ClusterMeasurer
from tilewright.tune.measure.cluster.ray_cluster import RayCluster, connect
from tilewright.tune.measure.evaluator import Effort
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import MeasureSettings
from tilewright.tune.target_key import target_text

SETTINGS = MeasureSettings(1, 60, 60, Limits(memory=2 << 30), Effort(most=3), (20, 20), 2.0)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with local_cluster() as made:
        yield made


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return replace(write_job(tmp_path_factory.mktemp("job")), target=target_text(host()))


def programs(*traces: str) -> list[tuple[Candidate, str]]:
    return [(Candidate((("number", n),)), trace) for n, trace in enumerate(traces)]


@pytest.mark.slow
def test_nothing_is_lost_with_a_worker(cluster: RayCluster, job: Job) -> None:
    """One of two workers is killed in the middle of a batch, then the other one."""
    seen: list[Result] = []
    lost: list[str] = []

    def kill_at(count: int, pid: int) -> Any:
        def on_answer(result: Result, trace: str) -> None:
            seen.append(result)
            if len(seen) == count:
                os.kill(pid, signal.SIGKILL)

        return on_answer

    with ClusterMeasurer(cluster, ARGV[1:], SETTINGS, lost.append) as measurer:
        first, second = worker_pids(measurer)
        batch = programs("copy good", "refuse", *["copy good"] * 8)
        results = measurer.measure(job, batch, on_result=kill_at(3, first))
        assert [r.candidate for r in results] == [candidate for candidate, _ in batch]
        assert [r.failure.partition(":")[0] for r in results] == ["", "refused", *[""] * 8]
        assert sorted(map(str, seen)) == sorted(map(str, results))
        assert [text.partition(":")[0] for text in lost] == ["worker 0"]
        assert measurer.head_to_head(job, None, "copy slow").significant
        models = (job.workload / f"{name}.tw" for name in ("slow", "good"))
        assert not measurer.compare(job, *models).significant

        seen.clear()
        with pytest.raises(TuneError, match=r"cluster\.no-worker.*worker 0.*worker 1"):
            measurer.measure(job, batch, on_result=kill_at(2, second))
        assert 2 <= len(seen) < len(batch)
    assert until(lambda: not (is_alive(first) or is_alive(second)))


@pytest.mark.slow
def test_workers_leave_nothing_behind(cluster: RayCluster, job: Job) -> None:
    with ClusterMeasurer(cluster, ARGV[1:], SETTINGS) as measurer:
        alive = worker_pids(measurer)
        assert [r.failure for r in measurer.measure(job, programs("copy good"))] == [""]
    assert until(lambda: not any(map(is_alive, alive)))


def test_the_package_may_be_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(ConfigError, match=r"cluster\.missing-package") as caught,
        connect("local:1"),
    ):
        pass
    assert "tilewright[cluster]" in str(caught.value)


@for_each("where", ["local:", "local:0", "local:x", "ray://10.0.0.1:10001"])
def test_what_is_no_cluster(where: str) -> None:
    with pytest.raises(ConfigError, match=r"cluster\.address"), connect(where):
        pass


class FakeRay:
    """Nodes as Ray lists them, and actors that keep how they were to be started."""

    def __init__(self, *nodes: dict[str, Any]) -> None:
        self.made: list[dict[str, Any]] = []
        self._nodes = nodes

    def nodes(self) -> tuple[dict[str, Any], ...]:
        return self._nodes

    def remote(self, made: type) -> FakeRay:
        return self

    def options(self, **how: Any) -> Any:
        self.made.append(how)
        return type("Options", (), {"remote": lambda *_: None})()


def test_one_worker_on_each_machine_with_all_its_cores() -> None:
    pytest.importorskip("ray")

    def node(name: str, alive: bool, **resources: float) -> dict[str, Any]:
        about = {"NodeID": name * 56, "NodeManagerAddress": name}
        return {**about, "Alive": alive, "Resources": resources}

    ray = FakeRay(node("a", True, CPU=8.0), node("b", False, CPU=8.0), node("c", True, memory=1.0))
    (connection,) = RayCluster(ray, None).start(["-m", "builder"], SETTINGS)
    assert connection.name == "a"
    assert ray.made[0]["num_cpus"] == 8
    assert ray.made[0]["scheduling_strategy"].node_id == "a" * 56
    assert not ray.made[0]["scheduling_strategy"].soft


def test_a_cluster_that_is_not_there() -> None:
    pytest.importorskip("ray")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and nobody listens
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ConfigError, match=r"cluster\.unreachable.*refused"), connect(where):
            pass
    with pytest.raises(ConfigError, match=r"cluster\.unreachable.*nonsense"), connect("nonsense"):
        pass


def test_an_address_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class NoRay:
        asked: ClassVar[list[str]] = []

        def init(self, address: str, **_: Any) -> None:
            self.asked.append(address)

        def shutdown(self) -> None:
            self.asked.append("shutdown")

    monkeypatch.setitem(sys.modules, "ray", NoRay())
    with connect("auto"):
        assert NoRay.asked == ["auto"]
    assert NoRay.asked == ["auto", "shutdown"]
