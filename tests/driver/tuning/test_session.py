from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.driver.tuning.fakes import MODEL, RANDOM, database, session, use_fakes
from tests.models import mlp, random_inputs, reference, save
from tests.tune.measure.local_cluster import local_cluster, worker_pids
from tilewright.cli.commands.tune import _latency
from tilewright.core.errors import ConfigError, ExecutionError, TuneError
from tilewright.driver.tuning import session as session_module
from tilewright.driver.tuning.budget import Budget
from tilewright.driver.tuning.end_to_end import Latency
from tilewright.driver.tuning.extract_tasks import TuningTask
from tilewright.driver.tuning.session import BUILD_WORKER, SearchSettings, TuningSession
from tilewright.driver.tuning.task_files import write_task
from tilewright.driver.tuning.task_search import steps_of
from tilewright.driver.tuning.validate import winner
from tilewright.runtime.profile import KernelTime
from tilewright.runtime.roofline.roofline import Bound
from tilewright.target.host import host
from tilewright.tune.measure.cluster.measurer import ClusterMeasurer
from tilewright.tune.measure.measurer import MeasureSettings
from tilewright.tune.records import Record, Records
from tilewright.tune.target_key import target_text
from tilewright.tune.tuned_schedules import FASTER, NO_DIFFERENCE, SLOWER, read_tuned_schedules


def _measured(records: Records) -> list[Record]:
    return [record for record in records if not record.baseline]


def test_trials_are_spent_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake, shown = use_fakes(monkeypatch), []
    with Records(database(tmp_path)) as records:
        report = session(records, lambda s: shown.append(s.doing), trials=20).run()
        found = _measured(records)
        assert report.trials == len(found) == len(fake.log) == 20
        assert {r.target for r in found} == {target_text(host())}
        assert {r.workload for r in found} == {s.task.workload for s in report.searches}
        assert records.workloads().keys() == {r.workload for r in found}
        assert [steps_of(r.trace) for r in found] == fake.log
        assert sum(s.failures for s in report.searches) == sum(bool(r.failure) for r in found) > 0
    assert any("searching" in text for text in shown)
    assert any("comparing" in text for text in shown)


def test_the_built_in_schedule_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use_fakes(monkeypatch)
    with Records(database(tmp_path)) as records:
        report = session(records, trials=6, batch=2, scheduler="round-robin").run()
    builtin = [search.task.scheduled.builtin for search in report.searches]
    assert fake.log[::2] == builtin
    assert all(search.builtin < 1 for search in report.searches)


def test_the_same_session_again_measures_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = use_fakes(monkeypatch)
    with Records(database(tmp_path)) as records:
        first = session(records, trials=20).run()
        before, compared, models = len(records), len(fake.compared), fake.models
        again = session(records, trials=20).run()
        assert (len(records), len(fake.compared), fake.models) == (before, compared, models)
        assert again.trials == 20
        assert again.latency == first.latency == Latency(1.0, 0.5, FASTER)
        more = session(records, trials=26, seed=3).run()
        assert more.trials == 26
        assert len(fake.log) == 26
        keys = [(r.workload, steps_of(r.trace)) for r in _measured(records)]
        assert max(Counter(keys).values()) == 1


def test_other_conditions_are_other_measurements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    with Records(database(tmp_path)) as records:
        session(records, trials=9).run()
        assert session(records, trials=9, cold=True).report.trials == 0


def test_an_interrupt_ends_the_search_and_keeps_what_was_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = use_fakes(monkeypatch)
    fake.interrupt_at = 10
    with Records(database(tmp_path)) as records:
        report = session(records, trials=100).run()
        assert report.interrupted
        assert report.trials == len(_measured(records)) == 10
        assert fake.compared
        assert any(winner(search) for search in report.searches)


def test_a_second_interrupt_still_gives_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    fake = use_fakes(monkeypatch)
    fake.interrupt_at = 10
    monkeypatch.setattr(session_module, "decide", interrupt)
    with Records(database(tmp_path)) as records:
        report = session(records, trials=100).run()
        assert report.interrupted
        assert report.undecided
        assert report.trials == len(_measured(records)) == 10
    assert "goes on from there" in _latency(report)


def test_no_schedule_is_used_where_the_time_for_halving_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch, Latency(1.0, 1.0, NO_DIFFERENCE))
    monkeypatch.setattr(Budget, "is_over", True)
    with Records(database(tmp_path)) as records:
        report = session(records, trials=30, scheduler="round-robin").run()
        assert report.latency == Latency(1.0, 1.0, NO_DIFFERENCE)
        assert not any(map(winner, report.searches))


class _Timed:
    """A model all of whose kernels take a microsecond in a run, and a tenth of that at least."""

    def __init__(self, names: frozenset[str]) -> None:
        self.names = names

    def kernel_times(self) -> dict[str, KernelTime]:
        bound = Bound(1e-7, "compute")
        return {name: KernelTime(name, 1, (2e3, 1e3), bound=bound) for name in self.names}


def test_schedulers_know_times_and_bounds_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)
    with Records(database(tmp_path)) as records:
        one = session(records, trials=8)
        tasks = [search.task for search in one.report.searches]
        names = frozenset(name for task in tasks for name in task.kernels)
        scheduler = one._scheduler(_Timed(names))  # type: ignore[arg-type]
    for task, known in zip(tasks, scheduler.tasks, strict=True):
        calls = task.about.weight / len(task.kernels)
        assert known.now == pytest.approx(1e-6 / calls)
        assert known.task.least_seconds == pytest.approx(1e-7 / calls)


def test_a_budget_ends_the_search(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use_fakes(monkeypatch)
    with Records(database(tmp_path)) as records:
        running = session(records, budget=3.0)
        assert 0 < running.left <= 3.0
        report = running.run()
        assert not report.interrupted
        assert len(fake.log) == report.trials > 3
        assert report.seconds < 30


def test_only_winners_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = use_fakes(monkeypatch)
    fake.gain = 1.5
    with Records(database(tmp_path)) as records:
        report = session(records, trials=20).run()
        assert {r.failure for r in records.comparisons()} == {"slower"}
        assert not any(map(winner, report.searches))
        assert report.latency is None
    assert len(read_tuned_schedules(database(tmp_path), host())) == 0


@pytest.mark.parametrize("result", [NO_DIFFERENCE, SLOWER])
def test_what_does_not_make_the_model_faster_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: str
) -> None:
    use_fakes(monkeypatch, Latency(1.0, 1.5, result))
    with Records(database(tmp_path)) as records:
        report = session(records, trials=20).run()
        assert report.latency is not None
        assert not any(map(winner, report.searches))
        before = len(records)
        session(records, trials=20).run()
        assert len(records) == before
    assert len(read_tuned_schedules(database(tmp_path), host())) == 0


def test_what_promises_least_is_given_up_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch, Latency(1.0, 1.0, NO_DIFFERENCE), Latency(1.0, 0.9, FASTER))
    with Records(database(tmp_path)) as records:
        report = session(records, trials=30, scheduler="round-robin").run()
        assert report.latency == Latency(1.0, 0.9, FASTER)
        won = [s for s in report.searches if winner(s)]
        gone = {r.workload for r in records.comparisons() if "in the whole model" in r.failure}
    promises = {s.task.workload: s.builtin - s.best for s in report.searches}
    assert len(won) == 1
    assert len(gone) == 2
    assert all(promises[won[0].task.workload] >= promises[workload] for workload in gone)


def test_a_kernel_that_the_sizes_do_not_fit_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_fakes(monkeypatch)

    def refuse(folder: Path, task: TuningTask, *_: object) -> object:
        if task.about.name == "softmax":
            raise ExecutionError("run.check", "sizes that do not fit")
        return write_task(folder, task, host())

    monkeypatch.setattr(session_module, "write_task", refuse)
    with Records(database(tmp_path)) as records:
        report = session(records, trials=12).run()
    problems = {search.task.about.name: search.problem for search in report.searches}
    assert problems == {"matmul_add_relu": "", "matmul_add": "", "softmax": "sizes that do not fit"}
    assert report.trials == 12


def test_mistakes_are_told_at_once(tmp_path: Path) -> None:
    with Records(database(tmp_path)) as records:
        with pytest.raises(TuneError, match="neither trials nor a budget"):
            TuningSession(MODEL, records, SearchSettings())
        with pytest.raises(ConfigError, match="no space of schedules"):
            session(records, trials=1, space="nowhere")


TUNER = """
import sys
from pathlib import Path
from tilewright.driver.tuning.session import SearchSettings, TuningSession
from tilewright.driver.tuning.end_to_end import TuningModel
from tilewright.target.host import host
from tilewright.tune.method import SearchMethod
from tilewright.tune.records import Records
model = TuningModel(sys.argv[1], host(), {}, "f32", {}, 1)
settings = SearchSettings(trials=8, batch=2, method=SearchMethod("random"))
with Records(Path(sys.argv[2])) as records:
    TuningSession(model, records, settings).run()
"""


@pytest.mark.slow
def test_killed_in_the_middle_and_resumed_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    model = save(mlp(8, 16, 64, 32), tmp_path / "model.onnx")
    path = database(tmp_path)
    command = [sys.executable, "-c", TUNER, str(model), str(path)]
    root = Path(__file__).parents[3]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    killed = subprocess.Popen(command, env=environment)
    while _count(path) < 3:
        assert killed.poll() is None
        time.sleep(0.05)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    before = _all(path)
    assert 3 <= len(before) < 8
    subprocess.run(command, env=environment, check=True)
    after = _all(path)
    assert after[: len(before)] == before
    measured = [record for record in after if not record.baseline]
    assert len(measured) == 8
    assert len({(r.workload, steps_of(r.trace)) for r in measured}) == 8
    inputs = random_inputs(mlp(8, 16, 64, 32))
    with tw.compile(model, tuned=path) as tuned:
        (expected,) = reference(mlp(8, 16, 64, 32), inputs).values()
        np.testing.assert_allclose(tuned(**inputs), expected, rtol=1e-4, atol=1e-6)


def _count(path: Path) -> int:
    try:
        return len(_all(path))
    except TuneError:  # there is no file yet, or nothing in it
        return 0


def _all(path: Path) -> list[Record]:
    with Records(path, read_only=True) as records:
        return list(records)


@pytest.mark.slow
def test_a_cluster_may_lose_a_worker(tmp_path: Path) -> None:
    """Two workers of a real cluster, one is killed in the middle: nothing lost, nothing twice."""
    lost: list[str] = []
    killed: list[int] = []
    workers: list[list[int]] = []

    def kill(session: TuningSession) -> None:
        if session.report.trials == 3 and not killed:
            killed.append(workers[0][0])
            os.kill(killed[0], signal.SIGKILL)

    with Records(database(tmp_path)) as records, local_cluster() as cluster:

        def opened(settings: MeasureSettings) -> ClusterMeasurer:
            made = ClusterMeasurer(cluster, BUILD_WORKER[1:], settings, lost.append)
            workers.append(worker_pids(made))
            return made

        running = TuningSession(
            MODEL, records, SearchSettings(8, batch=4, method=RANDOM), kill, opened
        )
        report = running.run()
        found = _measured(records)
    assert killed
    assert [text.partition(":")[0] for text in lost] == ["worker 0"]
    assert len(workers[1]) == 2  # there are two again for the comparisons
    assert report.trials == len(found) == 8
    assert max(Counter((r.workload, steps_of(r.trace)) for r in found).values()) == 1
    assert not all(record.failure for record in found)


def test_each_round_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    use_fakes(monkeypatch)
    with Records(database(tmp_path)) as records, caplog.at_level(logging.INFO, "tilewright.driver"):
        report = session(records, trials=6, batch=2, scheduler="round-robin").run()
    name = r"driver\.tuning\.session"
    lines = [r.getMessage() for r in caplog.records if re.search(name, r.name)]
    first = report.searches[0].task.about.name
    time = r"[0-9.e+]+ µs"
    assert re.fullmatch(f"{first}: 2 trials, best {time}, built-in {time}", lines[0]), lines
    assert re.fullmatch(r"tuned in \d+ s: 6 trials", lines[-1]), lines
