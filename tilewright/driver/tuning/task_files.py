"""A task as files: what a build worker compiles, and what a run worker feeds it and expects of it.

task.graph, task.npz    the model of one kernel
task.json               {"precision": ...}
input.0.npy, ...        in the order of the model's inputs
expected.0.npy, ...     what its node means for them, in the order of the outputs
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import numpy as np

from tilewright.core.errors import ScheduleError
from tilewright.driver.bisect.native_runner import NativeRunner
from tilewright.driver.bisect.reference_values import ReferenceValues
from tilewright.driver.graph_file import parse_file, write_graph
from tilewright.driver.tuning.extract_tasks import TuningTask
from tilewright.ir.graph.nodes import Graph
from tilewright.target.cpu import CpuTarget
from tilewright.target.host import host
from tilewright.target.target import Target
from tilewright.tune.measure.job import TOLERANCE, Job
from tilewright.tune.target_key import target_text

GRAPH, ABOUT = "task.graph", "task.json"
# How far results may be off where a precision rounds what the processor does not.
ROUNDED: Mapping[str, Mapping[str, float]] = {"tf32": {"f32": 1e-2}}


def write_task(
    folder: Path,
    task: TuningTask,
    target: Target,
    threads: int = 0,
    cold: bool = False,
    checked: bool = True,
) -> Job:
    """Write a task into a folder of its own; the job that measures its candidates."""
    folder.mkdir(parents=True, exist_ok=True)
    write_graph(folder / GRAPH, task.graph)
    (folder / ABOUT).write_text(json.dumps({"precision": task.precision}))
    inputs = (task.inputs[value.name] for value in task.graph.inputs)
    return Job(
        folder,
        target_text(target),
        write_arrays(folder, "input", inputs),
        write_arrays(folder, "expected", _expected(task, target)),
        threads,
        cold,
        {**TOLERANCE, **ROUNDED.get(task.precision, {})},
        checked,
    )


def _expected(task: TuningTask, target: Target) -> list[np.ndarray]:
    """What a task's node means for its inputs.

    A GPU's task is large for loops without schedules: the processor computes it by the built-in
    schedules that it has, if it has any for loops that were made for a GPU.
    """
    if isinstance(target, CpuTarget):
        native = NativeRunner(target, task.precision)
    else:
        native = NativeRunner(host())
        with suppress(ScheduleError):
            return native.run(task.graph, task.inputs)
    return ReferenceValues(task.inputs, native.run_unscheduled).outputs(task.graph)


def write_arrays(folder: Path, word: str, arrays: Iterable[np.ndarray]) -> tuple[Path, ...]:
    """Write arrays as numbered files."""
    paths = []
    for number, array in enumerate(arrays):
        paths.append(folder / f"{word}.{number}.npy")
        np.save(paths[-1], array, allow_pickle=False)
    return tuple(paths)


def read_task(folder: Path) -> tuple[Graph, str]:
    """The model of a task's kernel, and the precision that it is compiled with."""
    about = json.loads((folder / ABOUT).read_text())
    return parse_file(folder / GRAPH), str(about["precision"])
