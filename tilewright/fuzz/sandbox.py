"""Work in a process of its own, with limits on time and memory.

    run_isolated(job, SandboxLimits(seconds=20))
    # Outcome("done", {...}), Outcome("crash", "SIGSEGV")

The process is forked, so that it starts with everything imported. Whatever happens in it, a crash,
an endless loop, memory without bound, costs this one job. What the job returns comes back as JSON.
"""

from __future__ import annotations

import faulthandler
import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection, Pipe, wait
from typing import IO, Any, NoReturn

Job = Callable[[], Any]


@dataclass(frozen=True)
class SandboxLimits:
    """Seconds of computing that a job may take, and bytes of address space that it may add.

    It is given `patience` times as long on the clock, as other programs may keep it from computing.
    """

    seconds: float = 30.0
    memory: int = 3 << 30
    patience: float = 4.0


DEFAULT_LIMITS = SandboxLimits()


@dataclass(frozen=True)
class Outcome:
    """How a job ended: `done` with its value, or `crash`, `hang`, `memory`, `exception`."""

    kind: str
    value: Any = None
    seconds: float = 0.0


@dataclass
class _Child:
    key: int
    pid: int
    reply: Connection
    errors: IO[bytes]
    start: float
    deadline: float


def preload() -> None:
    """Import the compiler now, rather than in every process that is forked."""
    import_module("tilewright.driver.compile_graph")
    import_module("tilewright.frontends.onnx.table").converters()


def run_isolated(job: Job, limits: SandboxLimits = DEFAULT_LIMITS) -> Outcome:
    """Run one job in a process of its own."""
    return next(iter(run_all([job], limits)))[1]


def run_all(
    jobs: Iterable[Job], limits: SandboxLimits = DEFAULT_LIMITS, at_once: int = 1
) -> Iterator[tuple[int, Outcome]]:
    """Run jobs, some at once; gives the number of each with its outcome, as they end."""
    waiting, running = enumerate(jobs), list[_Child]()
    try:
        while True:
            while len(running) < at_once and (item := next(waiting, None)) is not None:
                running.append(_start(*item, limits))
            if not running:
                return
            for child in _ended(running):
                running.remove(child)
                yield child.key, _outcome(child)
    finally:
        for child in running:
            _kill(child)


def _start(key: int, job: Job, limits: SandboxLimits) -> _Child:
    ours, theirs = Pipe(duplex=False)
    errors = tempfile.TemporaryFile()  # closed when the child has ended
    sys.stdout.flush()
    sys.stderr.flush()
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        _work(job, theirs, errors, limits)
    theirs.close()
    return _Child(key, pid, ours, errors, start, start + limits.patience * limits.seconds)


def _work(job: Job, reply: Connection, errors: IO[bytes], limits: SandboxLimits) -> NoReturn:
    """The child: never comes back from here."""
    try:
        os.setpgid(0, 0)  # so that whatever it starts can be ended with it
        for stream in (1, 2):
            os.dup2(errors.fileno(), stream)
        faulthandler.disable()  # its trace of a crash would go to the parent's log
        used = _address_space() + limits.memory
        resource.setrlimit(resource.RLIMIT_AS, (used, used))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        most = math.ceil(time.process_time() + limits.seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
        reply.send_bytes(json.dumps(_result(job)).encode())
        reply.close()
    finally:
        os._exit(0)


def _result(job: Job) -> tuple[str, Any]:
    try:
        return "done", job()
    except MemoryError:
        return "memory", traceback.format_exc(limit=-3)
    except Exception:
        return "exception", traceback.format_exc(limit=-8)


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _ended(running: list[_Child]) -> list[_Child]:
    """Those that have replied, died or gone beyond their time; waits for the first."""
    left = min(child.deadline for child in running) - time.monotonic()
    ready = wait([child.reply for child in running], max(0.0, left))
    now = time.monotonic()
    return [c for c in running if c.reply in ready or c.deadline <= now]


def _outcome(child: _Child) -> Outcome:
    seconds = time.monotonic() - child.start
    try:
        # A reply may be there just when the time is over.
        text = child.reply.recv_bytes() if child.reply.poll() else None
    except (EOFError, OSError):
        text = b""
    status = _kill(child)
    if text is None:
        return Outcome("hang", _tail(child), seconds)
    if not text:
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else "exit"
        if name == "SIGXCPU":
            return Outcome("hang", _tail(child), seconds)
        return Outcome("crash", f"{name}\n{_tail(child)}", seconds)
    kind, value = json.loads(text)
    return Outcome(kind, value, seconds)


def _kill(child: _Child) -> int:
    """End a child and what it started; gives how it ended."""
    pid, status = os.waitpid(child.pid, os.WNOHANG)
    if pid == 0 and not child.reply.poll():
        os.kill(child.pid, signal.SIGKILL)
    if pid == 0:
        _, status = os.waitpid(child.pid, 0)
    _kill_group(child.pid)
    child.reply.close()
    return status


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # nothing of it is left


def _tail(child: _Child) -> str:
    child.errors.seek(0)
    text = child.errors.read().decode(errors="replace")
    child.errors.close()
    return text[-2000:]
