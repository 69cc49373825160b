"""Compiled models that behave and misbehave, and a job to measure them in; no compiler needed."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from tests.runtime.fake_model import (
    MODEL_IR,
    WEIGHTS,
    arguments,
    compile_ir,
    expected,
    manifest,
    objects,
)
from tilewright.runtime.container import assemble_weights, write_container
from tilewright.tune.measure.job import Job

_ENTRY = "  %ctx = alloca %ctx\n"
_SLOW = ("i64 %first, 1000", "i64 %first, 5000000")

# What is changed in the model's code; it says of itself that it takes 4 µs.
BEHAVIOURS: dict[str, tuple[tuple[str, str], ...]] = {
    "good": (),
    "slow": (_SLOW,),
    "wrong": (("%sum = fadd", "%sum = fsub"),),
    "segfault": ((_ENTRY, _ENTRY + "  store volatile i32 0, ptr null\n"),),
    "hang": ((_ENTRY, _ENTRY + "  br label %forever\nforever:\n  br label %forever\nnever:\n"),),
    "memory": (("%size = mul i64 %n, 4", "%size = mul i64 %n, 1000000000000"),),
}


@cache
def _objects(behaviour: str) -> dict[str, bytes]:
    text = MODEL_IR
    for before, after in BEHAVIOURS[behaviour]:
        assert before in text
        text = text.replace(before, after)
    return {**objects(), "model": compile_ir(text)}


def write_model(path: Path, behaviour: str) -> Path:
    # On two threads: what one thread says of its time is compared with its processor time.
    weights = assemble_weights([(0, WEIGHTS)], WEIGHTS.nbytes)
    write_container(path, manifest(threads=2), _objects(behaviour), [(0, weights)])
    return path


def write_job(folder: Path, n: int = 5) -> Job:
    """A job whose workload folder has a model of every behaviour."""
    for behaviour in BEHAVIOURS:
        write_model(folder / f"{behaviour}.tw", behaviour)
    x, z = arguments(n)
    y, s = expected(x, z)
    for name, array in {"x": x, "z": z, "y": y, "s": s}.items():
        np.save(folder / f"{name}.npy", array)
    inputs, outputs = (tuple(folder / f"{n}.npy" for n in names) for names in ("xz", "ys"))
    return Job(folder, "host", inputs, outputs)
