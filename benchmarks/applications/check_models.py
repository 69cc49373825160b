"""Every .onnx file inside the applications' packages: loads, runs, matches ONNX Runtime; its speed.

python check_models.py SECONDS        # one JSON object a line; in an environment with both engines

Both engines run in this process, on one thread, in turn; what counts is processor time, so that
other processes disturb little.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime as theirs

import tilewright.compat.onnxruntime as ours

PACKAGES = ("magika", "silero_vad", "rapidocr", "rapidocr_onnxruntime")
# Sizes for the dimensions that a model leaves open, several sets: by input, and where the file's
# name must have a part, by that.
OPEN: tuple[tuple[str, str, tuple[tuple[int, ...], ...]], ...] = (
    ("det", "x", ((1, 3, 64, 96), (1, 3, 160, 224))),
    ("rec", "x", ((1, 3, 48, 160), (3, 3, 48, 320))),
    ("cls", "x", ((1, 3, 48, 192), (4, 3, 48, 192))),
    ("model", "bytes", ((1, 2048), (5, 2048))),
    ("sequence", "input", ((1, 576), (7, 576))),
    ("silero", "input", ((1, 576), (1, 576))),
    ("silero", "state", ((2, 1, 128), (2, 1, 128))),
)
FREQUENCY = 16000


def models() -> Iterator[tuple[str, Path]]:
    """The files of the packages that are installed."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.origin is not None:
            for path in sorted(Path(spec.origin).parent.rglob("*.onnx")):
                yield package, path


def feeds(path: Path, session: Any) -> list[dict[str, np.ndarray]]:
    """Inputs of two sizes, drawn with a seed."""
    rng = np.random.default_rng(0)
    return [{a.name: _draw(path.name, a, n, rng) for a in session.get_inputs()} for n in (0, 1)]


def _draw(file: str, arg: Any, which: int, rng: np.random.Generator) -> np.ndarray:
    if arg.name == "sr":
        return np.array(FREQUENCY, np.int64)
    known = [sizes for part, name, sizes in OPEN if part in file and name == arg.name]
    shape = known[0][which] if known else tuple(arg.shape)
    if arg.type == "tensor(int32)":
        return rng.integers(0, 256, shape).astype(np.int32)
    return rng.uniform(-1, 1, shape).astype(np.float32)


def least(session: Any, feed: dict[str, np.ndarray], seconds: float) -> float:
    """The least processor seconds of a run."""
    best, end = float("inf"), time.process_time() + seconds
    while time.process_time() < end:
        start = time.process_time()
        session.run(None, feed)
        best = min(best, time.process_time() - start)
    return best


def opened(engine: ModuleType, path: Path) -> tuple[Any, float]:
    """A session on one thread, and the seconds it took to open it."""
    options = engine.SessionOptions()
    options.intra_op_num_threads = 1
    start = time.perf_counter()
    session = engine.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session, time.perf_counter() - start


def check(package: str, path: Path, seconds: float) -> dict[str, Any]:
    """One model on both engines."""
    sessions, opening = zip(*(opened(engine, path) for engine in (theirs, ours)), strict=True)
    worst, milliseconds = 0.0, []
    for feed in feeds(path, sessions[0]):
        expected, found = (session.run(None, feed) for session in sessions)
        for a, b in zip(expected, found, strict=True):
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            scale = max(1.0, float(np.abs(a).max(initial=0)))
            worst = max(worst, float(np.abs(a - b).max(initial=0)) / scale)
        times = [[least(s, feed, seconds / 3) for s in sessions] for _ in range(3)]
        milliseconds.append([min(t) * 1e3 for t in zip(*times, strict=True)])
    return {"package": package, "model": path.name, "opening": opening, "worst": worst,
            "milliseconds": milliseconds}  # fmt: skip


if __name__ == "__main__":
    for package, path in models():
        print(json.dumps(check(package, path, float(sys.argv[1]))), flush=True)
