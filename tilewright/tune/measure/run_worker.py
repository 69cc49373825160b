"""The process in which candidates run: `python -m tilewright.tune.measure.run_worker`.

Models run where they were compiled for: on the processor, or on the GPU of this machine. There an
illegal access makes the process unusable, so that whoever asks starts a new one after a failure.

It imports the runtime and nothing of the compiler. Requests have a list of `models`, compiled files
of one task, and the fields of its `Job`. Every model's outputs are checked before it is timed. One
model is timed by the adaptive evaluator. Two are timed interleaved, once each in a round with the
order alternating, until a small difference would show. The reply has `times`, a list for each
model, and for one model the other fields of `Evaluation`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np

from tilewright.core.worker.serve import serve
from tilewright.runtime.binding import Port
from tilewright.runtime.container import read_container
from tilewright.runtime.cpu.executable import Executable
from tilewright.runtime.host_memory import aligned_empty
from tilewright.runtime.load import open_model
from tilewright.runtime.model import CompiledModel
from tilewright.tune.measure.check_outputs import wrong
from tilewright.tune.measure.evaluator import Effort, Sample, evaluate
from tilewright.tune.measure.significance import MIN_GAIN, least_shown
from tilewright.tune.measure.stopwatch import Stopwatch

MIN_CLEAN_ROUNDS = 10
"""With fewer undisturbed rounds than these, all of them count."""


class Watch(Protocol):
    """A model that is timed in so many runs at a time."""

    runs: int

    def warm(self) -> None:
        """Run without timing."""

    def sample(self) -> Sample:
        """Seconds of one run."""
        ...


def run(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Load, check and time."""
    with ExitStack() as opened:
        containers = map(read_container, request["models"])
        models = [opened.enter_context(open_model(container)) for container in containers]
        inputs = _arrays(request["inputs"], models[0].inputs)
        expected = _arrays(request["expected"], models[0].outputs)
        for model in models:
            if request["threads"]:
                model.set_threads(request["threads"])
            failure = _check(model, inputs, expected, request["tolerance"])
            if failure:
                return {"failure": f"wrong: {failure}"}
        watches = [_stopwatch(model, inputs, request["cold"], opened) for model in models]
        if len(watches) == 1:
            incumbent = request["incumbent"] or math.inf
            effort = Effort(**request["effort"])
            found = evaluate(watches[0].sample, time.perf_counter, effort, incumbent)
            return {**found._asdict(), "times": [found.times]}
        return {"times": _interleaved(watches, request["rounds"], request["seconds"])}


def _stopwatch(
    model: CompiledModel, inputs: Sequence[np.ndarray], cold: bool, opened: ExitStack
) -> Watch:
    """The clock of the machine that a model is for."""
    if isinstance(model, Executable):
        return Stopwatch(model, inputs, cold)
    # Imported here because few models need it.
    from tilewright.runtime.cuda.executable import CudaExecutable
    from tilewright.tune.measure.gpu_stopwatch import GpuStopwatch

    assert isinstance(model, CudaExecutable)
    watch = GpuStopwatch(model, inputs, cold)
    opened.callback(watch.close)
    return watch


def _check(
    model: CompiledModel,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    tolerance: Mapping[str, float],
) -> str:
    got = model(*inputs)
    outputs = got if isinstance(got, tuple) else (got,)
    return wrong(model.outputs, outputs, expected, tolerance)


def _interleaved(
    watches: Sequence[Watch], rounds: Sequence[int], seconds: float
) -> list[list[float]]:
    """Times of the models side by side: of the undisturbed rounds, unless these are too few.

    There are at least and at most so many rounds as `rounds` says, if the seconds last.
    """
    fewest, most = rounds
    least = min(watch.runs for watch in watches)
    for watch in watches:
        watch.runs = least
    taken: list[list[Sample]] = []
    clean: list[list[Sample]] = []
    end = time.perf_counter() + seconds
    while len(clean) < most and (not taken or time.perf_counter() < end):
        if len(clean) >= fewest and _settled(clean):
            break
        row = _round(watches, backwards=len(taken) % 2 == 1)
        taken.append(row)
        if not any(sample.disturbed for sample in row):
            clean.append(row)
    return _columns(clean if len(clean) >= min(MIN_CLEAN_ROUNDS, fewest) else taken)


def _settled(rows: Sequence[Sequence[Sample]]) -> bool:
    first, second = _columns(rows)
    return least_shown(first, second) < MIN_GAIN


def _columns(rows: Sequence[Sequence[Sample]]) -> list[list[float]]:
    """The times of each model."""
    return [[sample.seconds for sample in column] for column in zip(*rows, strict=True)]


def _round(watches: Sequence[Watch], backwards: bool) -> list[Sample]:
    samples: dict[int, Sample] = {}
    order = range(len(watches))
    for which in reversed(order) if backwards else order:
        watches[which].warm()
        samples[which] = watches[which].sample()
    return [samples[which] for which in order]


def _arrays(paths: Sequence[str], ports: Sequence[Port]) -> list[np.ndarray]:
    return [_array(np.load(path), port) for path, port in zip(paths, ports, strict=True)]


def _array(stored: np.ndarray, port: Port) -> np.ndarray:
    """A file's content where a model would have it: at the beginning of a cache line."""
    dtype = port.dtype.numpy
    array, _ = aligned_empty(stored.shape, dtype if stored.dtype.kind == "V" else stored.dtype)
    array[...] = stored.view(array.dtype)
    return array


if __name__ == "__main__":
    serve(run)
