"""A worker process as its parent sees it: a request goes in, a reply or a failure comes out.

    with WorkerProcess([sys.executable, "-m", "package.worker"], limits=Limits()) as worker:
        answer = worker.ask({"square": 3}, seconds=10)      # a reply, or `crashed: SIGSEGV`

Requests and replies are lines of JSON (`serve.py` is the other end); nothing that comes out of a
process is ever unpickled. The first line of a process says that it is ready. One that is killed,
ends, runs out of memory or out of time answers with a failure that says so, and the next request
starts a new one. Nothing here blocks but `wait`, so that one thread serves many workers.
"""

from __future__ import annotations

import fcntl
import json
import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tilewright.core.config import inherited_environment
from tilewright.core.worker.crash import crash_failure, memory_kills

_ROOT = Path(__file__).resolve().parents[3]
# Only the end of what a worker printed is kept: the last words say why it ended.
_STDERR_TAIL = 4096
_CHUNK = 1 << 16
# What the pipe for requests holds: the most that Linux gives to anyone. A request that fits is sent
# by one system call; in parts, each of them waits until a computing thread gives up Python's lock.
_REQUEST_BYTES = 1 << 20
_GRACE = 1.0  # seconds from the end of a process's output to its own

START_SECONDS = 60.0
"""How long a process may take to become ready."""

STARTS = 3
"""How often one may be started that is killed before it is ready."""

LONGEST_REASON = 300
"""Characters of what a process wrote that a failure may quote."""


@dataclass(frozen=True)
class Limits:
    """What a worker may use: bytes of memory, bytes of any file that it writes."""

    memory: int = 8 << 30
    file: int = 4 << 30


@dataclass(frozen=True)
class Answer:
    """What came of a request: the reply, or a failure such as `crashed: SIGSEGV`.

    One that begins with `start` is no fault of the request: there is no worker to answer it.
    """

    reply: Mapping[str, Any]
    failure: str = ""

    @property
    def kind(self) -> str:
        """The word that a failure begins with."""
        return self.failure.partition(":")[0]


class WorkerProcess:
    """One process, started when it is needed; `served` counts what it has answered since.

    It has the environment of this process, this package on its path, and the `variables`.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        limits: Limits | None = None,
        variables: Mapping[str, str] | None = None,
        starts: int = STARTS,
    ) -> None:
        self.argv = tuple(argv)
        self.limits = limits
        self.variables = dict(variables or {})
        self.starts = starts
        self.served = 0
        self.answer: Answer | None = None
        self.deadline = 0.0
        self._seconds = 0.0
        self._process: subprocess.Popen[bytes] | None = None
        self._request = b""
        self._outgoing = b""
        self._incoming = bytearray()
        self._stderr_tail = b""
        self._stderr_closed = False
        self._starting = False
        self._starts = 0
        self._kills = 0

    def __enter__(self) -> WorkerProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def pid(self) -> int | None:
        """The process's number while there is one."""
        return None if self._process is None else self._process.pid

    def start(self) -> None:
        """Start the process before it is needed; one that cannot start says so when it is asked."""
        if self._process is None and not self._start():
            self.answer = None

    def ask(self, request: Mapping[str, Any], seconds: float) -> Answer:
        """Send a request and wait for what comes of it."""
        self.begin(request, seconds)
        return self.finish()

    def finish(self) -> Answer:
        """Wait for what comes of the request."""
        try:
            wait([self])
        except BaseException:
            self.close()  # the answer would be taken for that of the next request
            raise
        return self.take()

    def begin(self, request: Mapping[str, Any], seconds: float) -> None:
        """Send a request that is to be answered within `seconds`; see `wait`."""
        assert self.answer is None
        if self._process is not None and self._process.poll() is not None:
            self.close()  # it went while it had nothing to do, which is nobody's failure
        self._starts = 0
        if self._process is None and not self._start():
            return
        while self.served and not self._stderr_closed and self._read_stderr():
            pass  # what it said about an earlier request
        self._request = json.dumps(request).encode() + b"\n"
        self._seconds = seconds
        self._send()

    def take(self) -> Answer:
        """What came of the request; the worker is free for the next."""
        answer, self.answer = self.answer, None
        assert answer is not None
        return answer

    def kill(self) -> None:
        """Kill the process and those it started, from any thread: who waits for it is told so."""
        process = self._process
        if process is not None and process.poll() is None:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """End the process and those it started, whatever they are doing; a request is dropped."""
        self._stop()
        self.answer = None

    def register(self, selector: selectors.BaseSelector) -> None:
        """Listen to the process, and speak if there is something left to say."""
        assert self._process is not None
        assert self._process.stdout is not None
        selector.register(self._process.stdout, selectors.EVENT_READ, self)
        if not self._stderr_closed:
            assert self._process.stderr is not None
            selector.register(self._process.stderr, selectors.EVENT_READ, self)
        if self._outgoing:
            assert self._process.stdin is not None
            selector.register(self._process.stdin, selectors.EVENT_WRITE, self)

    def advance(self, pipe: Any) -> None:
        """Read from a pipe that has something, or write to one that can take something."""
        assert self._process is not None
        if pipe is self._process.stdin:
            self._write(self._process.stdin)
        elif pipe is self._process.stderr:
            self._read_stderr()
        else:
            self._read(self._process.stdout)

    def expire(self) -> None:
        """Give up: the time is over."""
        seconds = START_SECONDS if self._starting else self._seconds
        self._fail(f"timeout: no answer in {seconds:.3g} s")

    def _start(self) -> bool:
        """Start a process; where there can be none, that is the answer."""
        paths = inherited_environment().get("PYTHONPATH", "")
        variables = {"PYTHONPATH": f"{_ROOT}{os.pathsep}{paths}".rstrip(os.pathsep)}
        try:
            process = subprocess.Popen(
                self.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                # A group of its own: Ctrl-C is for the parent, and all of a group can be killed.
                start_new_session=True,
                env={**inherited_environment(), **variables, **self.variables},
            )
        except OSError as error:
            self.answer = Answer({}, f"start: cannot start {self.argv[0]}: {error.strerror}")
            return False
        self._process, self.served = process, 0
        self._starts += 1
        self._stderr_closed, self._starting = False, True
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        assert process.stdin is not None
        with suppress(OSError):  # a user may have so many pages in pipes; then it stays small
            fcntl.fcntl(process.stdin.fileno(), fcntl.F_SETPIPE_SZ, _REQUEST_BYTES)
        if self.limits is not None:
            _limit_process(process.pid, self.limits)
        return True

    def _send(self) -> None:
        """Have the request sent, once the process listens."""
        self._outgoing = self._request
        self._incoming.clear()
        self._stderr_tail = b""
        self._kills = memory_kills()
        seconds = START_SECONDS if self._starting else self._seconds
        self.deadline = time.monotonic() + seconds

    def _write(self, pipe: IO[bytes]) -> None:
        try:
            self._outgoing = self._outgoing[os.write(pipe.fileno(), self._outgoing) :]
        except BrokenPipeError:
            self._outgoing = b""  # it has ended, which the other pipes tell

    def _read_stderr(self) -> bool:
        """Keep the end of what the process prints; whether there may be more."""
        assert self._process is not None
        assert self._process.stderr is not None
        try:
            said = os.read(self._process.stderr.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        self._stderr_closed = not said
        self._stderr_tail = (self._stderr_tail + said)[-_STDERR_TAIL:]
        return bool(said)

    def _read(self, pipe: IO[bytes] | None) -> None:
        assert pipe is not None
        chunk = os.read(pipe.fileno(), _CHUNK)
        start = len(self._incoming)  # up to here there is no end of a line
        self._incoming += chunk
        if not chunk:
            self._ended()
        while self.answer is None and (end := self._incoming.find(b"\n", start)) >= 0:
            line = bytes(self._incoming[:end])
            del self._incoming[: end + 1]
            start = 0
            self._reply(line)

    def _reply(self, line: bytes) -> None:
        if self._starting:
            self._starting = False
            self.deadline = time.monotonic() + self._seconds
            return
        try:
            reply = json.loads(line)
            failure = reply.get("failure", "")
        except (ValueError, AttributeError):
            self._fail(f"crashed: it answered {line[:80]!r}")
            return
        self.served += 1
        self.answer = Answer({} if failure else reply, failure)

    def _ended(self) -> None:
        """The process has gone, or closed its output and might as well."""
        assert self._process is not None
        try:
            status = self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._fail("crashed: it closed its output")
            return
        while self._read_stderr():
            pass
        words = self._stderr_tail.decode(errors="replace")
        killed = status == -signal.SIGKILL and memory_kills() > self._kills
        if self._starting and status < 0 and not killed and self._starts < self.starts:
            self._stop()
            if self._start():
                self._send()
        else:
            self._fail(crash_failure(status, words, killed, LONGEST_REASON))

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()

    def _fail(self, failure: str) -> None:
        self.answer = Answer({}, f"start: {failure}" if self._starting else failure)
        self._stop()


def wait(workers: Sequence[WorkerProcess]) -> list[WorkerProcess]:
    """Those of the workers that have an answer, as soon as there is one."""
    while not (done := [worker for worker in workers if worker.answer is not None]):
        with selectors.DefaultSelector() as selector:
            for worker in workers:
                worker.register(selector)
            left = min(worker.deadline for worker in workers) - time.monotonic()
            ready = selector.select(max(0.0, left))
        for key, _ in ready:
            if key.data.answer is None and not key.fileobj.closed:  # type: ignore[union-attr]
                key.data.advance(key.fileobj)
        now = time.monotonic()
        for worker in workers:
            if worker.answer is None and worker.deadline <= now:
                worker.expire()
    return done


def _limit_process(process: int, limits: Limits) -> None:
    with suppress(ProcessLookupError):
        # The data of a process, not its address space: reserving addresses costs nothing.
        _limit(process, resource.RLIMIT_DATA, limits.memory)
        _limit(process, resource.RLIMIT_FSIZE, limits.file)
        _limit(process, resource.RLIMIT_CORE, 0)


def _limit(process: int, kind: int, most: int) -> None:
    """Limit what a process may use, further than it is already."""
    _, hard = resource.prlimit(process, kind)
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.prlimit(process, kind, (most, most))
