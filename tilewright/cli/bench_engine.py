"""The engines that `tilewright bench` compares, and the process that runs one of them.

Each engine runs in a process of its own, so that none disturbs another's threads or memory. The
process answers over a pipe: first how loading went and what the model answered, then, for every
number of seconds it is sent, the milliseconds of each run it made in that time.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.errors import Error, ExecutionError

Arrays = Mapping[str, np.ndarray]
Run = Callable[[Arrays], Arrays]


@dataclass(frozen=True)
class Task:
    """What every engine is given."""

    model: Path
    inputs: Arrays
    threads: int
    dims: Mapping[str, int]


@dataclass(frozen=True)
class Loaded:
    """How loading went: its seconds, and the outputs of the first run."""

    seconds: float
    outputs: Arrays


def tilewright(task: Task) -> Run:
    """This compiler."""
    from tilewright.cli.source import open_model

    return open_model(task.model, threads=task.threads, dims=task.dims).run


def onnxruntime(task: Task) -> Run:
    """ONNX Runtime's CPU provider with all its graph optimisations."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = task.threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    for name, size in task.dims.items():
        options.add_free_dimension_override_by_name(name, size)
    session = ort.InferenceSession(str(task.model), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, dict(inputs)), strict=True))


def openvino(task: Task) -> Run:
    """OpenVINO's CPU plugin, kept from the 16-bit floats it would choose by itself."""
    import openvino as ov

    core = ov.Core()
    model = core.read_model(str(task.model))
    if task.dims:  # the others are told the sizes as well
        model.reshape({name: list(value.shape) for name, value in task.inputs.items()})
    settings = {
        "INFERENCE_NUM_THREADS": task.threads,
        "INFERENCE_PRECISION_HINT": "f32",
        "PERFORMANCE_HINT": "LATENCY",
    }
    compiled = core.compile_model(model, "CPU", settings)
    names = _output_names(task.model)

    def run(inputs: Arrays) -> Arrays:
        outputs = compiled(dict(inputs), share_inputs=True, share_outputs=True)
        return {name: outputs[index] for index, name in enumerate(names)}

    return run


def _output_names(path: Path) -> list[str]:
    """The names of an ONNX file's outputs: an output of OpenVINO may have several, in any order."""
    import onnx

    return [value.name for value in onnx.load(str(path), load_external_data=False).graph.output]


# An engine is named after the package it needs.
ENGINES: dict[str, Callable[[Task], Run]] = {
    "tilewright": tilewright,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
}

# Engines that are asked for but cannot take part, and why.
REFUSED = dict.fromkeys(
    ("torch", "inductor"),
    "torch runs modules and does not read ONNX files, so there is nothing it could be given here",
)


def serve(engine: str, task: Task, pipe: Connection) -> None:
    """The engine's process: load, then time runs as asked until the other side closes the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
    try:
        start = time.perf_counter()
        run = ENGINES[engine](task)
        seconds = time.perf_counter() - start
        pipe.send(Loaded(seconds, dict(run(task.inputs))))
        while True:
            pipe.send(timed_runs(lambda: run(task.inputs), pipe.recv()))
    except (EOFError, BrokenPipeError):
        return
    except Error as error:
        pipe.send(error)
    except Exception as error:  # a foreign engine may raise anything
        text = f"{type(error).__name__}: {error}"
        pipe.send(ExecutionError("bench.engine", f"{engine} cannot run the model: {text}"))


def timed_runs(run: Callable[[], Any], seconds: float) -> list[float]:
    """Milliseconds of each run, as many as fit into `seconds`, one at least."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return times
