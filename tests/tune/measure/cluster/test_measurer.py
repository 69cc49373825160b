from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.tune.measure.cluster.fake_cluster import HERE, FakeCluster, FakeConnection
from tilewright.core.errors import TuneError
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.measure.cluster import measurer as measurer_module
from tilewright.tune.measure.cluster.measurer import ClusterMeasurer
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import MeasureSettings

ELSEWHERE = json.dumps({**json.loads(HERE), "cores": 1000})


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "task.graph").write_text("")
    return Job(tmp_path, HERE, (), ())


def programs(*traces: str) -> list[tuple[Candidate, str]]:
    return [(Candidate((("number", n),)), trace) for n, trace in enumerate(traces)]


def opened(*connections: FakeConnection, lost: Any = lambda text: None) -> ClusterMeasurer:
    return ClusterMeasurer(FakeCluster(*connections), [], MeasureSettings(builders=2), lost)


def test_results_are_in_order_whoever_has_them(job: Job) -> None:
    connections, seen = [FakeConnection("a"), FakeConnection("b")], []
    batch = programs("3", "2", "crashed: it", "0.5", "4", "5", "6")
    with opened(*connections) as measurer:
        results = measurer.measure(job, batch, on_result=lambda *one: seen.append(one))
        assert measurer.measure(job, []) == []
    assert [r.candidate for r in results] == [c for c, _ in batch]
    assert [r.times for r in results] == [(3.0,), (2.0,), (), (0.5,), (4.0,), (5.0,), (6.0,)]
    assert results[2].failure == "crashed: it"
    assert sorted(seen, key=lambda one: batch.index((one[0].candidate, one[1]))) == list(
        zip(results, [trace for _, trace in batch], strict=True)
    )
    calls = [
        [call for call in connection.calls if call[0] == "measure"] for connection in connections
    ]
    # the files once, and the best so far with every call
    assert all([call[2] is None for call in of] == [False, *[True] * (len(of) - 1)] for of in calls)
    incumbents = [call[4] for of in calls for call in of]
    assert math.inf in incumbents
    assert 0.5 in incumbents
    assert [connection.closed for connection in connections] == [[True], [True]]


def test_a_worker_that_goes_loses_nothing(job: Job) -> None:
    lost: list[str] = []
    connections = [FakeConnection("a", goes_after=4), FakeConnection("b")]
    seen: list[Result] = []
    with opened(*connections, lost=lost.append) as measurer:
        batch = programs(*map(str, range(9)))
        results = measurer.measure(job, batch, on_result=lambda result, _: seen.append(result))
        assert [r.seconds for r in results] == list(range(9))
        assert len(seen) == 9
        assert measurer.head_to_head(job, "1", None).significant
    assert lost == ["a: its machine is lost"]
    assert [connection.closed for connection in connections] == [[False], [True]]


def test_only_workers_with_the_target_of_a_job(job: Job) -> None:
    connections = [FakeConnection("a", ELSEWHERE), FakeConnection("b")]
    with opened(*connections) as measurer:
        measurer.measure(job, programs("1", "2", "3"))
        there = measurer.measure(replace(job, target=ELSEWHERE), programs("4"))
    assert [call[3] for call in connections[0].calls[1:]] == [["4"]]
    assert [call[3] for call in connections[1].calls[1:]] == [["1", "2"], ["3"]]
    assert there[0].seconds == 4


def test_nobody_is_left(job: Job) -> None:
    other = FakeConnection("c", ELSEWHERE)
    connections = [FakeConnection("a", goes_after=3), FakeConnection("b", problem="no room"), other]
    seen: list[Result] = []
    with opened(*connections) as measurer:
        with pytest.raises(TuneError, match=r"cluster\.no-worker") as caught:
            measurer.measure(job, programs(*"12345"), on_result=lambda r, _: seen.append(r))
        message = caught.value.message
        assert all(
            why in message
            for why in ("a: its machine is lost", "b: no room", "c: another machine", "in cores")
        )
        assert [r.seconds for r in seen] == [1]
        with pytest.raises(TuneError):
            measurer.head_to_head(job, None, None)
    with opened() as measurer, pytest.raises(TuneError, match="it has none"):
        measurer.measure(job, programs("1"))


def test_other_versions_stay_out(job: Job) -> None:
    lost: list[str] = []
    old = FakeConnection("old", versions={"tilewright": "0.0.1"})
    with opened(old, FakeConnection("new"), lost=lost.append) as measurer:
        measurer.measure(job, programs("1", "2", "3"))
    assert [call[0] for call in old.calls] == ["describe"]
    assert "0.0.1" in lost[0]


def test_who_does_not_say_what_it_is_stays_out(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measurer_module, "START_SECONDS", 0.05)
    lost: list[str] = []
    connections = (
        FakeConnection("a", silent=True),
        FakeConnection("b", goes_after=0),
        FakeConnection("c"),
    )
    with opened(*connections, lost=lost.append) as measurer:
        assert measurer.measure(job, programs("1"))[0].seconds == 1
    assert sorted(lost) == ["a: it said nothing for 0 s", "b: its machine is lost"]


def test_verdicts_are_of_one_machine(job: Job, tmp_path: Path) -> None:
    connections = [FakeConnection("a"), FakeConnection("b")]
    models = [tmp_path / "x.tw", tmp_path / "y.tw"]
    for path in models:
        path.write_bytes(b"model")
    with opened(*connections) as measurer:
        for _ in range(2):
            comparison = measurer.head_to_head(job, "1", None)
            assert comparison.times == ((1.0,), (2.0,))
        assert measurer.compare(job, *models).ratio == 0.5
    assert [call[0] for call in connections[0].calls[1:]] == [
        "head_to_head",
        "head_to_head",
        "compare",
    ]
    assert connections[0].calls[-1][1]["files"] == {"x.tw": b"model", "y.tw": b"model"}
    assert [call[0] for call in connections[1].calls] == ["describe"]


def test_an_interrupt_ends_the_workers(job: Job) -> None:
    connections = [FakeConnection("a"), FakeConnection("b")]

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with opened(*connections) as measurer, pytest.raises(KeyboardInterrupt):
        measurer.measure(job, programs(*"1234"), on_result=interrupt)
    assert [connection.closed for connection in connections] == [[False], [False]]
