from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.worker.processes import is_alive, until
from tests.tune.measure.fake_builder import ARGV
from tests.tune.measure.models import write_job
from tilewright.core.errors import TuneError
from tilewright.core.worker.process import Limits
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.measure.evaluator import Effort
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer, MeasureSettings
from tilewright.tune.records import Records

SETTINGS = MeasureSettings(
    build_seconds=30, run_seconds=30, limits=Limits(memory=2 << 30), effort=Effort(most=5)
)
ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return write_job(tmp_path_factory.mktemp("job"))


@pytest.fixture
def measurer(tmp_path: Path) -> Iterator[Measurer]:
    with Measurer(ARGV, SETTINGS, parent=tmp_path) as made:
        yield made


def programs(*traces: str) -> list[tuple[Candidate, str]]:
    return [(Candidate((("number", n),)), trace) for n, trace in enumerate(traces)]


def failures(results: list[Result]) -> list[str]:
    return [result.failure.partition(":")[0] for result in results]


def test_whatever_happens_costs_that_candidate_only(measurer: Measurer, job: Job) -> None:
    traces = ("copy good", "refuse", "copy wrong", "crash", "copy segfault", "copy memory")
    seen: list[tuple[Result, str]] = []
    results = measurer.measure(
        job, programs(*traces, "copy good"), on_result=lambda *one: seen.append(one)
    )
    assert failures(results) == ["", "refused", "wrong", "crashed", "crashed", "memory", ""]
    assert results[0].seconds == results[-1].seconds == pytest.approx(4e-6)
    assert results[2].failure.startswith("wrong: y is off by")
    assert "SIGSEGV" in results[4].failure
    assert [result.candidate for result in results] == [c for c, _ in programs(*traces, "")]
    assert seen == list(zip(results, [*traces, "copy good"], strict=True))
    assert not list(measurer.folder.glob("*.tw"))
    assert measurer.measure(job, []) == []


def test_a_candidate_that_hangs_costs_its_time(tmp_path: Path, job: Job) -> None:
    settings = replace(SETTINGS, run_seconds=1.5, effort=Effort(most=3, seconds=0.5))
    with Measurer(ARGV, settings, parent=tmp_path) as measurer:
        results = measurer.measure(job, programs("copy hang", "copy good"))
        # a new process may need longer than that to start where others run
        assert failures(results)[0] == "timeout"
        assert results[0].failure == "timeout: no answer in 2 s"
    settings = replace(SETTINGS, build_seconds=0.5)
    with Measurer(ARGV, settings, parent=tmp_path) as measurer:
        assert failures(measurer.measure(job, programs("hang"))) == ["timeout"]


def test_what_one_spoilt_is_not_held_against_the_next(tmp_path: Path, job: Job) -> None:
    """A worker that fails at its second request, whatever that is."""
    worker = (
        "import os\n"
        "from tilewright.core.worker.serve import serve\n"
        "from tilewright.tune.measure.run_worker import run\n"
        "served = []\n"
        "def spoilt(request):\n"
        "    served.append(1)\n"
        "    return run(request) if len(served) == 1 else os.abort()\n"
        "serve(spoilt)\n"
    )
    argv = (sys.executable, "-c", worker)
    with Measurer(ARGV, SETTINGS, run=argv, parent=tmp_path) as measurer:
        results = measurer.measure(job, programs("copy good", "copy good", "copy wrong"))
        assert failures(results) == ["", "", "wrong"]


def test_the_best_so_far_is_what_the_next_has_to_beat(tmp_path: Path, job: Job) -> None:
    """A worker that says of every candidate that it takes half the incumbent's time."""
    worker = (
        "from tilewright.core.worker.serve import serve\n"
        "serve(lambda request: {'times': [[(request['incumbent'] or 8.0) / 2]],\n"
        "                       'taken': 5, 'disturbed': 2})\n"
    )
    argv = (sys.executable, "-c", worker)
    with Measurer(ARGV, SETTINGS, run=argv, parent=tmp_path) as measurer:
        assert measurer.disturbed == 0
        batch = programs("copy good", "refuse", "copy good", "copy good")
        assert [r.seconds for r in measurer.measure(job, batch)] == [4.0, math.inf, 2.0, 1.0]
        assert [r.seconds for r in measurer.measure(job, batch[:3], 1.0)] == [0.5, math.inf, 0.25]
        assert measurer.disturbed == 0.4


def test_a_full_disk_is_nobodys_fault(tmp_path: Path, job: Job) -> None:
    """Files may be of 1 MB: `large` stands for a model for which there is no room."""
    settings = replace(SETTINGS, limits=Limits(memory=2 << 30, file=1 << 20))
    seen: list[Result] = []
    with Measurer(ARGV, settings, parent=tmp_path) as measurer:
        with pytest.raises(TuneError, match=r"measure\.disk-full.*File too large"):
            measurer.measure(
                job, programs("copy good", "large 2000000"), on_result=lambda r, t: seen.append(r)
            )
        # what could be measured was, and the session can go on when there is room again
        assert failures(seen) == [""]
        assert failures(measurer.measure(job, programs("copy good"))) == [""]
        assert not list(measurer.folder.glob("*.tw"))


def test_head_to_head(measurer: Measurer, job: Job) -> None:
    comparison = measurer.head_to_head(job, None, "copy slow")
    assert comparison.significant
    assert comparison.ratio < 0.01
    assert len({len(times) for times in comparison.times}) == 1
    assert not measurer.head_to_head(job, "copy slow", None).significant
    assert not measurer.head_to_head(job, "copy good", None).significant
    models = (job.workload / f"{name}.tw" for name in ("good", "slow"))
    assert measurer.compare(job, *models).significant
    for trace, failure in (("copy wrong", "wrong"), ("refuse", "refused")):
        comparison = measurer.head_to_head(job, trace, None)
        assert not comparison.significant
        assert comparison.failure.startswith(failure)
    assert not list(measurer.folder.glob("*.tw"))


SESSION = """
import json, signal, sys
from pathlib import Path
from tests.tune.measure.fake_builder import ARGV
from tilewright.tune.candidate import Candidate
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer
from tilewright.tune.records import Record, Records

# whoever starts tests in the background has them ignore interrupts, and their children too
signal.signal(signal.SIGINT, signal.default_int_handler)
data = json.loads(sys.argv[1])
job = Job(Path(data["workload"]), "host", *(tuple(map(Path, data[k])) for k in ("in", "out")))
with Records(Path(data["records"])) as records, Measurer(ARGV, parent=Path(data["tmp"])) as m:
    def keep(result, trace):
        records.add([Record("w", "host", trace, result.times, result.failure, 0.0, ())])
        print(m._runner.pid, m._pool._workers[0].pid, flush=True)
    m.measure(job, [(Candidate((("n", n),)), t) for n, t in enumerate(data["traces"])],
              on_result=keep)
"""


def session(job: Job, tmp_path: Path, *traces: str) -> subprocess.Popen[str]:
    data = {
        "workload": str(job.workload),
        "in": list(map(str, job.inputs)),
        "out": list(map(str, job.expected)),
        "records": str(tmp_path / "records.db"),
        "tmp": str(tmp_path),
        "traces": traces,
    }
    return subprocess.Popen(
        [sys.executable, "-c", SESSION, json.dumps(data)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_session_that_is_ended_loses_what_it_was_measuring(
    job: Job, tmp_path: Path, number: signal.Signals
) -> None:
    """Two candidates are measured, then one hangs in the run worker, and the tuner is ended."""
    with session(job, tmp_path, "copy good", "copy wrong", "copy hang") as tuner:
        assert tuner.stdout is not None
        assert tuner.stderr is not None
        lines = [tuner.stdout.readline() for _ in range(2)]
        # a wrong result ends its worker; the one that hangs now is another child
        pids = {int(word) for line in lines for word in line.split() if word != "None"}
        children = Path(f"/proc/{tuner.pid}/task/{tuner.pid}/children")
        assert until(lambda: len(children.read_text().split()) >= 2)
        time.sleep(0.3)
        pids |= set(map(int, children.read_text().split()))
        tuner.send_signal(number)
        tuner.wait(30)
        assert "KeyboardInterrupt" in tuner.stderr.read() or number == signal.SIGKILL
    assert until(lambda: not any(map(is_alive, pids)))
    with Records(tmp_path / "records.db") as records:
        kept = [(record.trace, record.failure.partition(":")[0]) for record in records]
    assert kept == [("copy good", ""), ("copy wrong", "wrong")]
    left = list(tmp_path.glob("tilewright-tune-*"))
    assert len(left) == (1 if number == signal.SIGKILL else 0)
    with Measurer(ARGV, SETTINGS, parent=tmp_path):
        assert not any(folder.exists() for folder in left)


def test_no_process_is_left(tmp_path: Path, job: Job) -> None:
    before = _children()
    with Measurer(ARGV, SETTINGS, parent=tmp_path) as measurer:
        measurer.measure(job, programs("copy good", "crash", "copy segfault", "copy good"))
        assert _children() > before
    assert _children() <= before
    assert not list(tmp_path.iterdir())


def _children() -> set[str]:
    """This process's children, also those that have ended and are not collected."""
    return set(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())
