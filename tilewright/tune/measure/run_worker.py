"""The process in which candidates run: `python -m tilewright.tune.measure.run_worker`.

It imports the runtime and nothing of the compiler. Requests have a list of `models`, compiled files
of one task, and what `Job` says of it. Every model's outputs are checked before it is timed. One
model is timed as the evaluator has it; several are timed in turn, one time each in a round, the
order turning with the rounds. The reply has `times`, a list for each model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from tilewright.runtime.binding import Port
from tilewright.runtime.executable import Executable
from tilewright.runtime.load import load
from tilewright.runtime.memory import aligned_empty
from tilewright.tune.measure.check import wrong
from tilewright.tune.measure.evaluator import Effort, evaluate
from tilewright.tune.measure.serve import serve
from tilewright.tune.measure.stopwatch import Stopwatch


def run(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Load, check and time."""
    with ExitStack() as opened:
        models = [opened.enter_context(load(path)) for path in request["models"]]
        inputs = _arrays(request["inputs"], models[0].inputs)
        expected = _arrays(request["expected"], models[0].outputs)
        for model in models:
            if request["threads"]:
                model.set_threads(request["threads"])
            failure = _check(model, inputs, expected, request["tolerance"])
            if failure:
                return {"failure": f"wrong: {failure}"}
        watches = [Stopwatch(model, inputs, request["cold"]) for model in models]
        if len(watches) == 1:
            incumbent = request["incumbent"] or math.inf
            effort = Effort(**request["effort"])
            times, stop = evaluate(watches[0].sample, time.perf_counter, effort, incumbent)
            return {"times": [times], "stop": stop}
        return {"times": _in_turn(watches, request["rounds"], request["seconds"])}


def _check(
    model: Executable,
    inputs: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    tolerance: Mapping[str, float],
) -> str:
    got = model(*inputs)
    outputs = got if isinstance(got, tuple) else (got,)
    return wrong(model.outputs, outputs, expected, tolerance)


def _in_turn(watches: Sequence[Stopwatch], rounds: int, seconds: float) -> list[list[float]]:
    times: list[list[float]] = [[] for _ in watches]
    end = time.perf_counter() + seconds
    for number in range(rounds):
        order = range(len(watches)) if number % 2 == 0 else range(len(watches))[::-1]
        for which in order:
            times[which].append(watches[which].sample())
        if time.perf_counter() > end:
            break
    return times


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
