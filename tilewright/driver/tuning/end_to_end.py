"""A whole model before and after tuning: kernels that are faster alone may not be so together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.core.dtypes import DTYPES
from tilewright.core.errors import Error
from tilewright.driver.compile_graph import compile_source
from tilewright.driver.kernel.backend import ScheduleProvider
from tilewright.driver.options import CompileOptions
from tilewright.driver.random_inputs import random_array
from tilewright.driver.tuning.apply_records import RecordedSchedules
from tilewright.driver.tuning.data_sheet_roofline import data_sheet_roofline
from tilewright.driver.tuning.paired_comparison import compare_twice
from tilewright.driver.tuning.task_files import write_arrays
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TYPICAL_SIZE, TensorType
from tilewright.runtime.container import read_container
from tilewright.runtime.load import open_model
from tilewright.runtime.profile import KernelTime
from tilewright.runtime.roofline.machine_roofline import machine_roofline
from tilewright.runtime.roofline.roofline import Roofline
from tilewright.target.gpu import GpuTarget
from tilewright.target.target import Target
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measures
from tilewright.tune.measure.significance import Comparison, least_shown
from tilewright.tune.target_key import target_text
from tilewright.tune.tuned_schedules import read_tuned_schedules, typical

# Rounding adds up over a model; each kernel was checked by itself.
ANY_DIFFERENCE: Mapping[str, float] = dict.fromkeys(DTYPES, float("inf"))


# Runs whose fastest times say which kernels a search should begin with.
RUNS = 3


@dataclass(frozen=True)
class TuningModel:
    """What is tuned: a model and how it is compiled; `sizes` are for those left symbolic.

    `threads` are those of the processor: 0 for a model that runs on a GPU.
    """

    source: Any
    target: Target
    dims: Mapping[str, int]
    precision: str
    sizes: Mapping[str, int]
    threads: int


@dataclass(frozen=True)
class Latency:
    """Seconds of a whole run before and after, and the result of their comparison.

    A gain of less than the fraction `least` would not have shown; None where it is from records.
    """

    before: float
    after: float
    result: str
    least: float | None = None


class WholeModel:
    """A model in files: compiled as it is, and with records; its inputs are drawn at random."""

    def __init__(self, model: TuningModel, folder: Path) -> None:
        self.model = model
        self.folder = folder
        self._plain = folder / "plain.tw"
        self._job: Job | None = None

    def kernel_times(self) -> dict[str, KernelTime]:
        """How long all calls of each kernel take in a run, by its name; nothing if none can run."""
        try:
            job = self._prepared()
        except Error:  # not every model takes random inputs; the comparison reports that
            return {}
        inputs = [np.load(path) for path in job.inputs]
        with open_model(read_container(self._plain), threads=self.model.threads) as loaded:
            profile = loaded.profile(*inputs, runs=RUNS, roofline=self._roofline(loaded.threads))
        return {row.name: row for row in profile.by_kernel()}

    def compare(self, records: Path, measurer: Measures) -> Latency:
        """Time the model as it is without records and with them."""
        try:
            job = self._prepared()
        except Error as error:
            return Latency(float("nan"), float("nan"), error.message)
        plain, tuned = self._plain, self.folder / "tuned.tw"
        self._compile(tuned, RecordedSchedules(read_tuned_schedules(records, self.model.target)))

        def run_pair(plain_first: bool) -> Comparison:
            return measurer.compare(job, *((plain, tuned) if plain_first else (tuned, plain)))

        outcome = compare_twice(run_pair)
        if not outcome.times:
            return Latency(float("nan"), float("nan"), outcome.result)
        before, after = outcome.baseline_times, outcome.times
        least = least_shown(after, before)
        return Latency(typical(before), typical(after), outcome.result, least)

    def _roofline(self, threads: int) -> Roofline:
        """What the machine can do: measured of a processor, of a GPU as its data sheet says."""
        if isinstance(self.model.target, GpuTarget):
            return data_sheet_roofline(self.model.target)
        return machine_roofline(threads)

    def _compile(self, path: Path, schedule: ScheduleProvider | None) -> Graph:
        m = self.model
        options = CompileOptions(m.target, m.precision, m.dims, schedules=schedule)
        artifact = compile_source(m.source, options)
        artifact.write(path)
        return artifact.build.graph

    def _prepared(self) -> Job:
        """The model compiled, inputs drawn at random, and what it gives for them."""
        if self._job is None:
            inputs = _inputs(self._compile(self._plain, None), self.model.sizes)
            with open_model(read_container(self._plain)) as loaded:
                result = loaded(*inputs)
            outputs = result if isinstance(result, tuple) else (result,)
            given = write_arrays(self.folder, "model-in", inputs)
            wanted = write_arrays(self.folder, "model-out", outputs)
            target, threads = target_text(self.model.target), self.model.threads
            self._job = Job(self.folder, target, given, wanted, threads, tolerance=ANY_DIFFERENCE)
        return self._job


def _inputs(graph: Graph, given: Mapping[str, int]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    sizes = {**dict.fromkeys(graph.symbols(), TYPICAL_SIZE), **given}
    inputs = []
    for value in graph.inputs:
        assert isinstance(value.type, TensorType)
        shape = [int(evaluate(d, sizes)) for d in value.type.shape]
        inputs.append(random_array(value.type.dtype, shape, rng))
    return inputs
