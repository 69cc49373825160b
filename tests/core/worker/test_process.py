from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.core.worker.processes import PATIENCE, is_alive, until
from tests.for_each import for_each
from tests.tune.measure.fake_builder import ARGV
from tilewright.core.worker import process
from tilewright.core.worker.process import (
    STARTS,
    Answer,
    Limits,
    WorkerProcess,
)


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    with WorkerProcess(ARGV, limits=Limits(memory=1 << 30)) as made:
        yield made


def ask(worker: WorkerProcess, trace: str, seconds: float = PATIENCE) -> Answer:
    return worker.ask({"trace": trace}, seconds)


def script(text: str) -> WorkerProcess:
    return WorkerProcess([sys.executable, "-c", f"print('ready', flush=True)\n{text}"])


def test_one_process_answers_many_requests(worker: WorkerProcess) -> None:
    assert worker.pid is None  # it is started when it is needed
    pids = {ask(worker, "noise").reply["pid"] for _ in range(3)}
    assert pids == {worker.pid}
    assert worker.served == 3


def test_a_process_may_be_started_before_it_is_needed(worker: WorkerProcess) -> None:
    worker.start()
    pid = worker.pid
    worker.start()
    assert pid is not None
    assert ask(worker, "noise").reply["pid"] == worker.pid == pid


@pytest.mark.parametrize(
    ("trace", "failure"),
    [
        ("crash", "crashed: SIGSEGV: about to go"),
        ("exit", "crashed: exit status 3"),
    ],
)
def test_a_process_that_ends_is_replaced(worker: WorkerProcess, trace: str, failure: str) -> None:
    assert ask(worker, trace).failure == failure
    assert worker.pid is None
    assert ask(worker, "noise").reply["pid"] == worker.pid


def test_a_process_that_hangs_is_killed(worker: WorkerProcess) -> None:
    assert not ask(worker, "noise").failure
    pid = worker.pid
    assert pid is not None
    assert ask(worker, "hang", 0.3).failure == "timeout: no answer in 0.3 s"
    assert not is_alive(pid)
    assert not ask(worker, "noise").failure


def test_memory_is_limited(worker: WorkerProcess) -> None:
    assert ask(worker, "memory").kind == "memory"


@for_each("words", ["LLVM ERROR: out of memory", "std::bad_alloc"])
def test_last_words_about_memory(words: str) -> None:
    with script(f"import os, sys; sys.stderr.write('{words}\\n'); os.abort()") as worker:
        assert ask(worker, "").failure == f"memory: {words}"


def test_a_process_killed_from_outside(worker: WorkerProcess) -> None:
    ask(worker, "noise")
    worker.begin({"trace": "hang"}, PATIENCE)
    assert worker.pid is not None
    os.kill(worker.pid, signal.SIGKILL)
    assert worker.finish().failure == "crashed: SIGKILL"


def test_one_that_went_while_idle_is_nobodys_failure(worker: WorkerProcess) -> None:
    ask(worker, "noise")
    pid = worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert until(lambda: not is_alive(pid))
    assert ask(worker, "noise").reply["pid"] not in (pid, None)


@for_each("answer", ["nonsense", "[1]"])
def test_what_is_no_reply(answer: str) -> None:
    with script(f"input(); print('{answer}', flush=True); input()") as worker:
        assert ask(worker, "").failure.startswith("crashed: it answered")


def test_a_process_that_closes_its_pipes() -> None:
    text = "import os, time; os.close(2); input(); print('{}', flush=True); os.close(1); input()"
    with script(text) as worker:
        assert not ask(worker, "").failure
        assert ask(worker, "").kind == "crashed"


def test_a_request_longer_than_a_pipe_holds(worker: WorkerProcess) -> None:
    assert not ask(worker, "noise " + "x" * 5_000_000).failure
    # to a process that does not listen
    with script("import time; time.sleep(600)") as deaf:
        assert ask(deaf, "x" * 5_000_000, 0.5).kind == "timeout"


def test_what_a_worker_starts_ends_with_it() -> None:
    text = (
        "import subprocess, sys, json; input(); p = subprocess.Popen(['sleep', '600']); "
        "print(json.dumps({'pid': p.pid}), flush=True); input()"
    )
    with script(text) as worker:
        pid = ask(worker, "").reply["pid"]
        assert is_alive(pid)
    assert until(lambda: not is_alive(pid))


def test_a_program_that_is_not_there() -> None:
    with WorkerProcess(["/nonexistent/program"]) as worker:
        for _ in range(2):
            worker.start()
            failure = worker.ask({}, 1).failure
            assert failure == "start: cannot start /nonexistent/program: No such file or directory"


def test_limits_that_the_parent_has_already_hold() -> None:
    """As `ulimit` sets them: nobody may raise them again."""
    words = (
        "import resource, sys; from tests.tune.measure.fake_builder import ARGV;"
        "from tilewright.core.worker.process import Limits, WorkerProcess;"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20));"
        "print(WorkerProcess(ARGV, limits=Limits()).ask({'trace': 'noise'}, 60).failure)"
    )
    done = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, check=True)
    assert done.stdout == "\n"


# Counts its starts in a file, and is killed in all but the last of so many.
KILLED = """
import os, signal, sys
with open(sys.argv[1], "a") as starts:
    starts.write("x")
if os.path.getsize(sys.argv[1]) < int(sys.argv[2]):
    os.kill(os.getpid(), signal.SIGKILL)
print("ready", flush=True)
print(input(), flush=True)
"""


@pytest.mark.parametrize(("starts", "fails"), [(STARTS, False), (STARTS + 1, True)])
def test_a_worker_that_is_killed_while_it_starts(tmp_path: Path, starts: int, fails: bool) -> None:
    with WorkerProcess([sys.executable, "-c", KILLED, str(tmp_path / "n"), str(starts)]) as worker:
        answer = worker.ask({"number": 7}, PATIENCE)
    expected = Answer({}, "start: crashed: SIGKILL") if fails else Answer({"number": 7})
    assert answer == expected
    assert len((tmp_path / "n").read_text()) == STARTS


def test_a_worker_that_does_not_start() -> None:
    with WorkerProcess([sys.executable, "-c", "import missing_package"]) as worker:
        answer = worker.ask({}, PATIENCE)
    assert answer.failure.startswith("start: crashed: exit status 1: ModuleNotFoundError")


def test_an_interrupted_request_is_dropped(
    worker: WorkerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(workers: object) -> None:
        raise KeyboardInterrupt

    ask(worker, "noise")
    with monkeypatch.context() as patch:
        patch.setattr(process, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ask(worker, "hang")
    assert ask(worker, "noise").reply["pid"] == worker.pid


def test_workers_go_with_their_parent(tmp_path: Path) -> None:
    """Killed at once: one worker waits for requests, one hangs in the middle of one."""
    program = f"""
import time
from tilewright.core.worker.process import WorkerProcess
idle, busy = (WorkerProcess({ARGV!r}) for _ in range(2))
idle.ask({{"trace": "noise"}}, 60)
busy.ask({{"trace": "noise"}}, 60)
busy.begin({{"trace": "hang"}}, 600)
busy._write(busy._process.stdin)
print(idle.pid, busy.pid, flush=True)
time.sleep(600)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        pids = list(map(int, parent.stdout.readline().split()))
        assert len(pids) == 2
        assert all(map(is_alive, pids))
        parent.kill()
    assert until(lambda: not any(map(is_alive, pids)))


def test_a_worker_that_starts_after_its_parent_is_gone() -> None:
    """The request that was sent before is not begun."""
    process = subprocess.Popen(ARGV, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _, said = process.communicate(b'{"trace": "hang"}\n', timeout=PATIENCE)
    assert b"the parent is gone" in said


def test_variables() -> None:
    argv = [sys.executable, "-c", "import os; print(); input(); print(os.environ['TRIED'])"]
    with WorkerProcess(argv, variables={"TRIED": '{"yes": 1}'}) as worker:
        assert ask(worker, "").reply == {"yes": 1}


def test_killed_by_another_thread(worker: WorkerProcess) -> None:
    worker.kill()  # there is nothing yet
    assert not ask(worker, "noise").failure
    worker.begin({"trace": "hang"}, PATIENCE)
    killer = threading.Timer(0.1, worker.kill)
    killer.start()
    assert worker.finish().failure == "crashed: SIGKILL"
    killer.join()


def test_long_replies() -> None:
    text = "import json; input(); print(json.dumps({'x': 'y' * 10**6}), flush=True); input()"
    with script(text) as worker:
        assert len(ask(worker, "").reply["x"]) == 10**6
