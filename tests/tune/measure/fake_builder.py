"""A build worker that does as the trace says: `copy NAME`, or fails in the way it names."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.errors import ScheduleError
from tilewright.core.worker.serve import serve

ARGV = (sys.executable, str(Path(__file__)))


def _refuse() -> None:
    raise ScheduleError("split.factor", "cannot split loop i by 0")


def _crash() -> None:
    print("about to go", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGSEGV)


def _defect() -> None:
    raise KeyError("nothing there")


ACTIONS: dict[str, Callable[[], object]] = {
    "refuse": _refuse,
    "crash": _crash,
    "defect": _defect,
    "hang": lambda: time.sleep(600),
    "memory": lambda: np.ones(1 << 40),
    "exit": lambda: os._exit(3),
    "noise": lambda: print("x" * 1_000_000),
}


def build(request: Mapping[str, Any]) -> Mapping[str, Any]:
    word, _, name = (request["trace"] or "copy good").partition(" ")
    if word == "copy":
        shutil.copy(Path(request["workload"]) / f"{name}.tw", request["out"])
    elif word == "large":
        Path(request["out"]).write_bytes(bytes(int(name)))
    else:
        ACTIONS[word]()
    return {"pid": os.getpid()}


if __name__ == "__main__":
    serve(build)
