"""A whole model before and after tuning: kernels that won alone may still lose together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.core.dtypes import DTYPES
from tilewright.driver.compiler import Compiler
from tilewright.driver.kernels import MakeSchedule
from tilewright.driver.random_arrays import random_array
from tilewright.driver.tuning.contest import contest
from tilewright.driver.tuning.task_files import write_arrays
from tilewright.driver.tuning.tuned import TunedSchedules
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.runtime.load import load
from tilewright.schedule.builtin.structure import TYPICAL_SIZE
from tilewright.target.cpu import Target
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer
from tilewright.tune.measure.significance import Verdict
from tilewright.tune.verdicts import read_verdicts, typical

# Rounding adds up over a model; each kernel was checked by itself.
ANY_DIFFERENCE = dict.fromkeys(DTYPES, float("inf"))


@dataclass(frozen=True)
class Model:
    """What is tuned: a model and how it is compiled; `sizes` are for those left symbolic."""

    source: Any
    target: Target
    dims: Mapping[str, int]
    precision: str
    sizes: Mapping[str, int]
    threads: int


@dataclass(frozen=True)
class Latency:
    """Seconds of a whole run before and after, and what a contest of both came to."""

    before: float
    after: float
    result: str


def compare_models(model: Model, records: Path, measurer: Measurer, folder: Path) -> Latency:
    """Time the model as it is without records and with them."""
    schedules = TunedSchedules(read_verdicts(records, model.target))
    plain, tuned = folder / "plain.tw", folder / "tuned.tw"
    graph = _compiled(model, None, plain)
    _compiled(model, schedules, tuned)
    job = _job(model, graph, plain, folder)

    def meet(plain_first: bool) -> Verdict:
        return measurer.compare(job, *((plain, tuned) if plain_first else (tuned, plain)))

    outcome = contest(meet)
    if not outcome.times:
        return Latency(float("nan"), float("nan"), outcome.result)
    return Latency(typical(outcome.rival_times), typical(outcome.times), outcome.result)


def _compiled(model: Model, schedule: MakeSchedule | None, path: Path) -> Graph:
    compiler = Compiler(
        model.source,
        model.target,
        model.dims,
        model.precision,
        None,
        None,
        lambda stage: None,
        schedule,
    )
    return compiler.write(path).graph


def _job(model: Model, graph: Graph, plain: Path, folder: Path) -> Job:
    """Inputs drawn at random, and what the model gives for them."""
    rng = np.random.default_rng(0)
    sizes = {**dict.fromkeys(graph.symbols(), TYPICAL_SIZE), **model.sizes}
    inputs = []
    for value in graph.inputs:
        assert isinstance(value.type, TensorType)
        shape = [int(evaluate(d, sizes)) for d in value.type.shape]
        inputs.append(random_array(value.type.dtype, shape, rng))
    with load(plain) as loaded:
        result = loaded(*inputs)
    outputs = result if isinstance(result, tuple) else (result,)
    given, wanted = (
        write_arrays(folder, f"model-{word}", arrays)
        for word, arrays in (("in", inputs), ("out", outputs))
    )
    return Job(folder, "", given, wanted, model.threads, tolerance=ANY_DIFFERENCE)
