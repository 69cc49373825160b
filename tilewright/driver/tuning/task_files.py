"""A task as files: what a build worker compiles, and what a run worker feeds it and expects of it.

task.graph, task.npz    the model of one kernel
task.json               {"precision": ...}
input.0.npy, ...        in the order of the model's inputs
expected.0.npy, ...     what its node means for them, in the order of the outputs
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tilewright.driver.bisect.native_runner import NativeRunner
from tilewright.driver.bisect.reference_values import ReferenceValues
from tilewright.driver.graph_file import parse_file, write_graph
from tilewright.driver.tuning.extract_tasks import TuningTask
from tilewright.ir.graph.nodes import Graph
from tilewright.target.cpu import CpuTarget
from tilewright.tune.measure.job import Job
from tilewright.tune.target_key import target_text

GRAPH, ABOUT = "task.graph", "task.json"


def write_task(
    folder: Path, task: TuningTask, target: CpuTarget, threads: int = 0, cold: bool = False
) -> Job:
    """Write a task into a folder of its own; the job that measures its candidates."""
    folder.mkdir(parents=True, exist_ok=True)
    write_graph(folder / GRAPH, task.graph)
    (folder / ABOUT).write_text(json.dumps({"precision": task.precision}))
    native = NativeRunner(target, task.precision)
    expected = ReferenceValues(task.inputs, native.run_unscheduled).outputs(task.graph)
    inputs = (task.inputs[value.name] for value in task.graph.inputs)
    return Job(
        folder,
        target_text(target),
        write_arrays(folder, "input", inputs),
        write_arrays(folder, "expected", expected),
        threads,
        cold,
    )


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
