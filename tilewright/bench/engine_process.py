"""The process of an engine as the harness sees it: stopped (SIGSTOP) while it is not measured."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tilewright.core.host.machine_load import busy_seconds, own_seconds
from tilewright.core.worker.crash import reason

ROOT = Path(__file__).resolve().parents[2]


class EngineFailed(Exception):
    """A worker ended or went silent; the text says why."""


class EngineProcess:
    """One process; `ask` is answered by one line of JSON."""

    def __init__(
        self, command: Sequence[str], variables: Mapping[str, str], cwd: Path | None = None
    ) -> None:
        self.log = tempfile.TemporaryFile("w+")
        self.buffer = b""
        # Through env(1): the child's environment is this one's, and a few variables more.
        settings = [f"{name}={value}" for name, value in variables.items()]
        self.process = subprocess.Popen(
            ["env", f"PYTHONPATH={ROOT}", *settings, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            bufsize=0,
            start_new_session=True,
            cwd=cwd,
        )

    def read(self, timeout: float) -> dict[str, Any]:
        """The next answer."""
        stdout = self.process.stdout
        assert stdout is not None
        while b"\n" not in self.buffer:
            if not select.select([stdout], [], [], timeout)[0]:
                raise EngineFailed(f"no answer in {timeout:.0f} s")
            chunk = os.read(stdout.fileno(), 1 << 16)
            if not chunk:
                raise EngineFailed(self._last_words())
            self.buffer += chunk
        line, self.buffer = self.buffer.split(b"\n", 1)
        answer: dict[str, Any] = json.loads(line)
        return answer

    def load(self, timeout: float) -> dict[str, Any]:
        """Wait until the model is loaded, then stop the process."""
        answer = self.read(timeout)
        self._signal(signal.SIGSTOP)
        return answer

    def ask(self, line: str, timeout: float) -> dict[str, Any]:
        """Wake the process for one answer."""
        assert self.process.stdin is not None
        self._signal(signal.SIGCONT)
        try:
            self.process.stdin.write(f"{line}\n".encode())
        except BrokenPipeError:
            raise EngineFailed(self._last_words()) from None
        answer = self.read(timeout)
        self._signal(signal.SIGSTOP)
        return answer

    def sample(self, seconds: float, timeout: float) -> dict[str, Any]:
        """Let the engine run for `seconds`; the fraction of a core that others used is added."""
        mine = (self.process.pid, os.getpid())
        busy, own = busy_seconds(), sum(map(own_seconds, mine))
        answer = self.ask(str(seconds), timeout)
        busy, own = busy_seconds() - busy, sum(map(own_seconds, mine)) - own
        return {**answer, "others": max(0.0, busy - own) / (sum(answer["ms"]) / 1e3)}

    def close(self) -> None:
        """End the process."""
        self._signal(signal.SIGKILL)
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.log):
            if pipe is not None:
                pipe.close()

    def _signal(self, number: signal.Signals) -> None:
        """Signal the process and any children it has."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def _last_words(self) -> str:
        status = self.process.wait()
        self.log.seek(0)
        return f"exit status {status}: {reason(self.log.read()) or 'no message'}"
