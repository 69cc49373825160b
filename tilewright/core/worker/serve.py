"""The worker's end of the pipes: read a request, answer it, until its parent is gone.

    def build(request): ...; return {}
    if __name__ == "__main__":
        serve(build)

A handler's exception is the answer to that request: `refused` for what the compiler or the runtime
says cannot be, `memory`, `disk`, and `crashed` for the rest. A worker goes with the thread that
started it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import IO, Any

from tilewright.core.errors import ConfigError, Error

Handler = Callable[[Mapping[str, Any]], Mapping[str, Any]]

_PR_SET_PDEATHSIG = 1
_MEMORY_CODES = frozenset({"run.memory"})
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def serve(handle: Handler) -> None:
    """Answer requests on what was standard output: libraries may print, but not there."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for the parent to handle
    _die_with_parent()
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        answer_lines(handle, sys.stdin.buffer, answers)


def answer_lines(handle: Handler, requests: IO[bytes], answers: IO[bytes]) -> None:
    """Say that requests may come, and answer every line until there are no more."""
    answers.write(b"{}\n")
    answers.flush()
    for line in requests:
        answers.write(json.dumps(_answer(handle, json.loads(line))).encode() + b"\n")
        answers.flush()


def _answer(handle: Handler, request: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        return handle(request)
    except Exception as error:  # whatever it is, it costs this request only
        failure = _failure(error)
        if failure.startswith("crashed"):
            traceback.print_exc()
        return {"failure": failure}


def _failure(error: Exception) -> str:
    if isinstance(error, MemoryError):
        return f"memory: {error}"
    if isinstance(error, Error) and error.code in _MEMORY_CODES:
        return f"memory: {error.message}"
    if _is_disk_full(error):
        return f"disk: {error}"
    if isinstance(error, Error):
        return f"refused: {type(error).__name__}[{error.code}]: {error.message}"
    return f"crashed: {type(error).__name__}: {error}"


def _is_disk_full(error: Exception) -> bool:
    if isinstance(error, ConfigError):
        return error.code.endswith(".disk-full")
    return isinstance(error, OSError) and error.errno in _DISK_FULL


def _die_with_parent() -> None:
    """Be killed when the parent goes, also in the middle of native code that never ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    # It may have gone before; its last request would still be in the pipe.
    pipe = select.poll()
    pipe.register(sys.stdin, 0)
    if any(event & select.POLLHUP for _, event in pipe.poll(0)):
        raise SystemExit("the parent is gone")
