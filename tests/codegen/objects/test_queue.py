from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.core.worker.processes import is_alive, until
from tilewright.codegen.objects import queue as object_queue
from tilewright.codegen.objects.compile import compile_object, compiled_modules
from tilewright.codegen.objects.queue import ObjectQueue
from tilewright.core.errors import CodegenError
from tilewright.target.host import host

WRONG = "define i32 @f() { ret i64 0 }"


def _text(number: int) -> str:
    steps = "\n".join(f"  %x{i + 1} = fadd float %x{i}, {i}.0" for i in range(number))
    return f"define float @f{number}(float %x0) {{\n{steps}\n  ret float %x{number}\n}}\n"


MODULES = {f"m{n}": _text(n) for n in (3, 40, 1, 17, 0, 8)}
EXPECTED = {name: compile_object(text, host()) for name, text in MODULES.items()}


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any text at all is worth a worker."""
    monkeypatch.setattr(object_queue, "CHARACTERS_PER_WORKER", 0)


def _fill(queue: ObjectQueue) -> None:
    for name, text in MODULES.items():
        queue.add(name, text)


def _wait_for(condition: str, queue: ObjectQueue) -> None:
    end = time.monotonic() + 60
    while getattr(queue, condition) and time.monotonic() < end:
        time.sleep(0.01)


def _pid(queue: ObjectQueue) -> int:
    process = queue._workers[0].process
    assert until(lambda: process.pid is not None)
    assert process.pid is not None
    return process.pid


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_objects_are_the_same_wherever_they_are_made(workers: int, eager: None) -> None:
    before = compiled_modules()
    with ObjectQueue(host(), workers) as queue:
        _fill(queue)
        assert len(queue._workers) == workers
        if workers:
            # Let the workers have everything.
            _wait_for("_waiting", queue)
        objects = queue.finish()
    assert objects == EXPECTED
    assert list(objects) == list(MODULES)
    assert compiled_modules() - before == len(MODULES)


def test_unoptimized_modules_stay_so(eager: None) -> None:
    with ObjectQueue(host(), 1) as queue:
        queue.add("plain", _text(9), optimized=False)
        _wait_for("_waiting", queue)
        assert queue.finish() == {"plain": compile_object(_text(9), host(), optimized=False)}


def test_little_work_starts_no_process() -> None:
    with ObjectQueue(host(), 4) as queue:
        _fill(queue)
        assert not queue._workers
        assert queue.finish() == EXPECTED


def test_many_modules_to_come_start_a_process_at_once() -> None:
    with ObjectQueue(host(), 4) as queue:
        queue.expect(object_queue.MODULES_WORTH_A_WORKER - 1)
        assert not queue._workers
        queue.expect(object_queue.MODULES_WORTH_A_WORKER)
        assert _pid(queue)
        _fill(queue)
        assert len(queue._workers) == 1
        assert queue.finish() == EXPECTED
    with ObjectQueue(host(), 0) as queue:
        queue.expect(10**6)
        assert not queue._workers


def test_nothing_to_do() -> None:
    with ObjectQueue(host()) as queue:
        assert queue.finish() == {}


def test_a_worker_that_dies_costs_nothing(eager: None) -> None:
    with ObjectQueue(host(), 1) as queue:
        queue.add("first", _text(5))
        pid = _pid(queue)
        os.kill(pid, signal.SIGKILL)
        assert until(lambda: not is_alive(pid))
        _fill(queue)
        assert queue.finish() == {"first": compile_object(_text(5), host())} | EXPECTED


@pytest.mark.parametrize("program", ["", "print('hello')", "import sys; sys.stdin.read(1)"])
def test_a_process_that_is_no_worker_costs_nothing(
    program: str, eager: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", program]
    monkeypatch.setattr(object_queue, "python_command", lambda module: command)
    with ObjectQueue(host(), 2) as queue:
        _fill(queue)
        assert queue.finish() == EXPECTED


def test_where_no_process_can_be_started(eager: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with ObjectQueue(host(), 2) as queue:
        _fill(queue)
        assert queue.finish() == EXPECTED
        assert all(worker.process.pid is None for worker in queue._workers)


@pytest.mark.parametrize("executable", ["", "/usr/bin/blender"])
def test_a_program_that_is_not_python_is_not_started(
    executable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert ObjectQueue(host()).most_workers == 0


@pytest.mark.parametrize("workers", [0, 1])
def test_text_that_llvm_refuses_is_our_error(workers: int, eager: None) -> None:
    with ObjectQueue(host(), workers) as queue:
        queue.add("wrong", WRONG)
        _fill(queue)
        with pytest.raises(CodegenError, match=r"codegen.llvm"):
            queue.finish()


def test_an_error_elsewhere_ends_the_workers(eager: None) -> None:
    queue = ObjectQueue(host(), 2)

    def fail() -> None:
        with queue:
            _fill(queue)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert queue._workers
    assert not any(worker.thread.is_alive() for worker in queue._workers)
    assert all(worker.process.pid is None for worker in queue._workers)


def test_workers_end_with_a_process_that_is_killed() -> None:
    program = f"""
import os, signal, sys
sys.path[:0] = {sys.path!r}
from tilewright.codegen.objects import queue as object_queue
from tilewright.target.host import host
object_queue.CHARACTERS_PER_WORKER = 0
queue = object_queue.ObjectQueue(host(), 1)
queue.add("f", {_text(3)!r})
while not queue._objects: pass
print(queue._workers[0].process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert until(lambda: not is_alive(int(done.stdout)))
