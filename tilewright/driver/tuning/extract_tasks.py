"""The tasks of a model: its kernels, each as a model of its own that can be measured alone.

Kernels of the same workload are one task, whose weight is how often the model runs them. Sizes
that stay symbolic have a value while a task is measured; its schedule is for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.core.errors import TuneError
from tilewright.driver.compile_graph import lower
from tilewright.driver.extract_node import extract_node
from tilewright.driver.model_build import BuiltStep, ModelBuild
from tilewright.driver.options import CompileOptions
from tilewright.driver.random_inputs import random_array
from tilewright.frontends.onnx.segments.data_dependent import DataDependent
from tilewright.ir.graph.dims import symbols_of
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.loop.nodes import Func
from tilewright.ir.types import TYPICAL_SIZE, TensorType, Type
from tilewright.schedule.builtin.for_target import schedule_for
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.target.target import Target
from tilewright.tune.task_scheduler.task_scheduler import Task
from tilewright.tune.workload import workload_hash, workload_text


@dataclass(frozen=True)
class Scheduled:
    """A function as the compiler asks for its schedule, and what it gets by default."""

    func: Func
    constants: frozenset[str]
    builtin: str
    rule: str

    @cached_property
    def text(self) -> str:
        """The workload."""
        return workload_text(self.func, self.constants)


@dataclass(frozen=True)
class TuningTask:
    """A kernel to tune; `graph` is a model of just this kernel, `inputs` are for a run of it.

    The model has it under the names `kernels`.
    """

    about: Task
    kernels: frozenset[str]
    scheduled: Scheduled
    graph: Graph
    inputs: Mapping[str, np.ndarray]
    sizes: Mapping[str, int]
    precision: str

    @cached_property
    def workload(self) -> str:
        """The hash by which records know it."""
        return workload_hash(self.scheduled.text)


@dataclass
class Extraction:
    """The tasks of a model, and the kernels that cannot be measured alone."""

    tasks: list[TuningTask] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)


def extract_tasks(
    source: Any,
    target: Target,
    dims: Mapping[str, int] | None = None,
    precision: str = "f32",
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Extraction:
    """The tasks of a model compiled with `dims`; other sizes are measured at `sizes`."""
    try:
        build, seen = _built(source, target, dict(dims or {}), precision)
    except DataDependent as error:
        raise TuneError(
            "tune.segmented",
            f"the model is compiled in segments, because of {error.message}",
            loc=error.loc,
            help="make constant what it waits for, for example by --dim",
        ) from error
    found = Extraction()
    for steps in _by_workload(build, seen).values():
        kernel = steps[0].kernel
        task = _task(build, steps, seen[kernel.name], dict(sizes or {}), seed)
        (_, alike) = _built(task.graph, target, {}, precision)
        # Values that lie inside others give a kernel loops that it has only there.
        if [s.text for s in alike.values()] == [task.scheduled.text]:
            found.tasks.append(task)
        else:
            found.skipped.append(kernel.name)
    return found


def _built(
    source: Any, target: Target, dims: Mapping[str, int], precision: str
) -> tuple[ModelBuild, dict[str, Scheduled]]:
    """A model built without code, and what was scheduled for it, by kernel."""
    seen: dict[str, Scheduled] = {}

    def schedule(func: Func, constants: frozenset[str], target: Target) -> ScheduledFunc:
        made = schedule_for(func, constants, target)
        seen[func.name] = Scheduled(func, constants, str(made.trace), made.rule)
        return made

    return lower(source, CompileOptions(target, precision, dims, schedules=schedule)), seen


def _by_workload(build: ModelBuild, seen: Mapping[str, Scheduled]) -> dict[str, list[BuiltStep]]:
    texts = {name: scheduled.text for name, scheduled in seen.items()}
    found: dict[str, list[BuiltStep]] = {}
    for step in build.steps:
        found.setdefault(texts[step.kernel.name], []).append(step)
    return found


def _task(
    build: ModelBuild,
    steps: list[BuiltStep],
    scheduled: Scheduled,
    given: Mapping[str, int],
    seed: int,
) -> TuningTask:
    node, kernel, program = steps[0].node, steps[0].kernel, build.program
    types = [program.types[name] if name else None for name in node.inputs]
    sizes = {name: given.get(name, TYPICAL_SIZE) for name in sorted(_symbols(node, types))}
    rng = np.random.default_rng(seed)
    known = {
        name: program.constants[name].data for name in node.inputs if name in program.constants
    }
    drawn = {
        name: known[name] if name in known else _drawn(t, sizes, rng)
        for name, t in zip(node.inputs, types, strict=True)
        if name
    }
    arrays = [drawn.get(name) for name in node.inputs]
    params = [p.name for p in scheduled.func.params]
    inputs = [name for name in node.inputs if name]
    fixed = frozenset(
        name for name, p in zip(inputs, params, strict=False) if p in scheduled.constants
    )
    graph, values = extract_node(node, arrays, types, sizes, fixed)
    flops = float(evaluate(kernel.flops, sizes)) or 1.0
    about = Task(kernel.name, float(len(steps)), flops, scheduled.rule)
    names = frozenset(step.kernel.name for step in steps)
    return TuningTask(about, names, scheduled, graph, values, sizes, build.precision)


def _symbols(node: Node, types: list[Type | None]) -> frozenset[str]:
    """The symbolic sizes that a node or anything inside it mentions."""
    inner = [symbols_of((n.attrs, n.types)) for region in node.regions for n in region.walk()]
    outer = symbols_of((node.attrs, node.types, *(t for t in types if t is not None)))
    return outer.union(*inner)


def _drawn(type: Type | None, sizes: Mapping[str, int], rng: np.random.Generator) -> np.ndarray:
    assert isinstance(type, TensorType)
    shape = [int(evaluate(d, sizes)) for d in type.shape]
    return random_array(type.dtype, shape, rng)
