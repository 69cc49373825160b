"""The compiler behind `tw.compile`: from a source to the parts of a container.

Importing this imports every stage, so a model that is in the cache already never does.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tilewright.codegen.objects.queue import ObjectQueue
from tilewright.core.config import config
from tilewright.core.errors import ConfigError
from tilewright.driver.artifact.entry_point import emit_entry
from tilewright.driver.artifact.manifest import make_manifest
from tilewright.driver.artifact.runtime_objects import support_objects
from tilewright.driver.build import ModelBuild, build_model, emit_kernel
from tilewright.driver.gc_tuning import rare_collections
from tilewright.driver.kernel.kernels import Kernel, Made, MakeSchedule
from tilewright.driver.pipeline import graph_passes
from tilewright.driver.precision import check_precision, machine_for
from tilewright.driver.report.dump import dump_stages
from tilewright.driver.report.explain import explain_build
from tilewright.driver.report.step_rows import step_rows
from tilewright.driver.tuning.apply_records import TunedSchedules
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ir.graph.nodes import Graph
from tilewright.passes.canonicalize.infer_types import bind_dims
from tilewright.passes.canonicalize.name_outputs import name_outputs
from tilewright.passes.manager import PassLog, run_passes
from tilewright.runtime.container import (
    Container,
    assemble_weights,
    fill_container,
)
from tilewright.target.host import host
from tilewright.target.registry import resolve_target
from tilewright.target.target import Target
from tilewright.tune.tuned_schedules import read_verdicts

Progress = Callable[[str], None]
# The stage that takes turns with the lowering of kernels.
EMIT = "emit LLVM"


@dataclass
class Timings:
    """Seconds spent in each stage of a compilation, and in each graph pass."""

    stages: dict[str, float] = field(default_factory=dict)
    passes: PassLog = field(default_factory=PassLog)

    def add(self, stage: str, start: float) -> None:
        """Count the time since `start` for `stage`."""
        self.stages[stage] = self.stages.get(stage, 0.0) + time.perf_counter() - start

    def table(self) -> str:
        """One line a stage, then one a pass."""
        lines = [f"{name:28} {seconds * 1e3:9.1f} ms" for name, seconds in self.stages.items()]
        return "\n".join([*lines, "", self.passes.table()])


def lower(
    source: Any,
    *,
    target: str = "native",
    dims: Mapping[str, int] | None = None,
    precision: str = "f32",
    overrides: Path | None = None,
    tuned: str | os.PathLike[str] | None = None,
    nearest: bool = False,
    timings: Timings | None = None,
    progress: Progress = lambda stage: None,
) -> ModelBuild:
    """Everything up to machine code: the fused graph, its kernels, the memory plan, the calls."""
    folder = overrides or config().override_dir
    machine = machine_for(resolve_target(target), check_precision(precision))
    sizes = dict(dims or {})
    schedule = None
    if tuned is not None:
        schedule = TunedSchedules(read_verdicts(Path(tuned), machine, nearest))
    parts = (source, machine, sizes, precision, folder, timings, progress, schedule)
    return Compiler(*parts).build()


def import_graph(source: Any, dims: Mapping[str, int] | None = None) -> Graph:
    """A model as a graph, before any pass."""
    if not isinstance(source, Graph):
        return import_onnx(source, dict(dims or {}))
    if dims and _is_fused(source):
        raise ConfigError(
            "dims.fused",
            f"the sizes of graph {source.name!r} can only be set before fusion",
            help="give the model, or its graph before the pass `fuse`",
        )
    return bind_dims(source, dims or {})


def _is_fused(graph: Graph) -> bool:
    return any(n.op == "fused" for n in graph.walk())


def lower_to_graph(
    source: Any,
    dims: Mapping[str, int],
    timings: Timings,
    target: Target | None = None,
    precision: str = "f32",
) -> Graph:
    """Import and optimise a model: the graph whose nodes are kernels."""
    start = time.perf_counter()
    graph = import_graph(source, dims)
    timings.add("import", start)
    start = time.perf_counter()
    names = graph.outputs
    passes = () if _is_fused(graph) else graph_passes(precision, target or host(), timings.passes)
    graph = name_outputs(run_passes(graph, passes, timings.passes), names)
    timings.add("graph passes", start)
    return graph


class Compiler:
    """One compilation, from the source to the parts of a container."""

    def __init__(
        self,
        source: Any,
        target: Target,
        dims: Mapping[str, int],
        precision: str,
        overrides: Path | None,
        timings: Timings | None,
        progress: Progress,
        schedule: MakeSchedule | None = None,
    ) -> None:
        self.source = source
        self.target = target
        self.dims = dims
        self.precision = precision
        self.overrides = overrides
        self.timings = timings or Timings()
        self.progress = progress
        self.schedule = schedule

    def write(self, path: Path) -> ModelBuild:
        """Compile into a file; what was built."""
        build, objects, manifest = self._parts()
        start = time.perf_counter()
        self.progress("write")
        fill_container(path, manifest, objects, build.weights.items())
        self._finish("pack and write weights", start)
        return build

    def container(self) -> Container:
        """Compile in memory."""
        build, objects, manifest = self._parts()
        start = time.perf_counter()
        weights = assemble_weights(build.weights.items(), build.weights.size)
        self._finish("pack weights", start)
        return Container(manifest, objects, weights)

    def _finish(self, stage: str, start: float) -> None:
        self.timings.add(stage, start)
        if config().time:
            print(self.timings.table(), file=sys.stderr)

    def build(self, made: Made = lambda kernel: None) -> ModelBuild:
        """The parts of the model, before code generation; `made` is told of each new kernel."""
        self.progress("graph")
        graph = lower_to_graph(self.source, self.dims, self.timings, self.target, self.precision)
        self.progress("kernels")
        start, emitted = time.perf_counter(), self.timings.stages.get(EMIT, 0.0)
        build = build_model(graph, self.target, self.overrides, self.precision, made, self.schedule)
        emitted = self.timings.stages.get(EMIT, 0.0) - emitted
        self.timings.add("lower and schedule kernels", start + emitted)
        return build

    def _parts(self) -> tuple[ModelBuild, dict[str, bytes], dict[str, Any]]:
        with ObjectQueue(self.target) as queue, rare_collections():
            build = self._emit(queue)
            self.progress("machine code")
            start = time.perf_counter()
            support = support_objects(self.target)
            objects = queue.finish() | support
            self.timings.add("LLVM", start)
        counters = {"kernels": len({s.kernel.name for s in build.steps}), "steps": len(build.steps)}
        log = self.timings.passes
        rows = step_rows(build, log.refusals)
        explanation = explain_build(build, log, rows)
        return build, objects, make_manifest(build, rows, explanation, counters)

    def _emit(self, queue: ObjectQueue) -> ModelBuild:
        """The parts of the model, each module's text handed over as soon as it is there."""
        texts: dict[str, str] = {}

        def made(kernel: Kernel) -> None:
            start = time.perf_counter()
            texts[kernel.name] = emit_kernel(kernel, self.target, self.precision)
            queue.add(kernel.name, texts[kernel.name])
            self.timings.add(EMIT, start)

        build = self.build(made)
        start = time.perf_counter()
        for name, text in emit_entry(build).items():
            # The entry is long and runs once a call: optimising it would take longer than it saves.
            queue.add(name, text, optimized=False)
        self.timings.add(EMIT, start)
        dump_stages(build, texts)
        return build
