"""`bisect`: the first pass, fusion or schedule step that changes a model's results, and the node.

    report = bisect("model.onnx", {"x": x})
    report.finding                      # None, if the results are right

The reference is the imported graph, run by the interpreter. First the graph passes are checked,
then the kernels, then the arena. A segmented model is run on reference values, and each segment is
checked when it is reached.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.core.numeric_error import array_error
from tilewright.driver.artifact.manifest import graph_ports
from tilewright.driver.bisect.kernels import find_kernel, find_overwritten
from tilewright.driver.bisect.native_runner import NativeRunner
from tilewright.driver.bisect.passes import changes, find_pass
from tilewright.driver.bisect.reference_values import ReferenceValues
from tilewright.driver.bisect.report import BisectReport, Finding
from tilewright.driver.bisect.tolerance import Tolerance, is_finite, tolerance
from tilewright.driver.options import Progress, no_progress
from tilewright.driver.pipeline import passes_for
from tilewright.driver.precision import check_precision
from tilewright.driver.segmented.model import SegmentedModel
from tilewright.driver.sources import import_graph
from tilewright.frontends.onnx.segments.data_dependent import DataDependent
from tilewright.frontends.onnx.segments.source import OnnxSegmentSource
from tilewright.ir.graph.nodes import Graph
from tilewright.passes.canonicalize.name_outputs import name_outputs
from tilewright.passes.context import PassContext
from tilewright.runtime.binding import Port
from tilewright.target.registry import resolve_cpu


def bisect(
    source: Any,
    inputs: Mapping[str, Any],
    *,
    dims: Mapping[str, int] | None = None,
    precision: str = "f32",
    threads: int | None = None,
    allowed: float | None = None,
    progress: Progress = no_progress,
) -> BisectReport:
    """Compare what a model's machine code gives for `inputs` with the interpreter.

    `allowed` is the largest difference that is no mistake, relative to the largest magnitude of a
    result; by default that depends on the precision.
    """
    limit = tolerance(allowed, check_precision(precision))
    native = NativeRunner(resolve_cpu("native"), precision, threads, progress)
    search = _Search(native, limit)
    try:
        graph = import_graph(source, dims)
    except DataDependent:
        SegmentedModel(OnnxSegmentSource(source, dims), search.segment).run(inputs)
    else:
        search.check(source, graph, inputs, dims)
    return BisectReport(
        search.errors, limit.allowed, search.finding, native.compilations, tuple(search.notes)
    )


@dataclass
class _Search:
    """What was found so far."""

    native: NativeRunner
    allowed: Tolerance
    errors: dict[str, float] = field(default_factory=dict)
    finding: Finding | None = None
    notes: list[str] = field(default_factory=list)
    segments: int = 0

    def check(
        self,
        source: Any,
        graph: Graph,
        inputs: Mapping[str, np.ndarray],
        dims: Mapping[str, int] | None = None,
        prefix: str = "",
    ) -> list[np.ndarray]:
        """Check a graph, unless something was found already; its reference outputs."""
        self.native.progress("interpreting the model")
        reference = ReferenceValues(inputs, self.native.run_unscheduled)
        wanted = reference.outputs(graph)
        if self.finding is not None:
            return wanted
        self.notes += _not_finite(graph, reference)
        found = self.native.run(source, reference.inputs, dims)
        pairs = list(zip(found, wanted, strict=True))
        self.errors.update(
            (prefix + name, array_error(*pair))
            for name, pair in zip(graph.outputs, pairs, strict=True)
        )
        if any(self.allowed.excess(*pair) for pair in pairs):
            self.finding = _find(graph, reference, self.native, self.allowed)
        return wanted

    def segment(self, graph: Graph) -> Any:
        """What a segmented model calls in place of the machine code of a segment."""
        self.segments += 1
        return _Segment(self, graph, self.segments)


@dataclass
class _Segment:
    """Called in place of machine code: checks the segment and returns its reference outputs."""

    search: _Search
    graph: Graph
    number: int

    @property
    def outputs(self) -> tuple[Port, ...]:
        """The outputs of the segment."""
        return tuple(map(Port.from_manifest, graph_ports(self.graph)[1]))

    def __call__(self, *args: np.ndarray) -> tuple[np.ndarray, ...]:
        inputs = {v.name: np.asarray(x) for v, x in zip(self.graph.inputs, args, strict=True)}
        before = self.search.finding
        where = f"segment {self.number}"
        found = self.search.check(self.graph, self.graph, inputs, prefix=f"{where}, ")
        finding = self.search.finding
        if finding is not None and finding is not before:
            finding.details["segment"] = str(self.number)
        return tuple(found)


def _find(
    graph: Graph, reference: ReferenceValues, native: NativeRunner, allowed: Tolerance
) -> Finding:
    native.progress("graph passes")
    context = PassContext(native.target, native.precision)
    made = changes(graph, passes_for(native.target), context)
    wanted = reference.outputs(graph)
    finding = find_pass(reference, wanted, made, allowed)
    if finding is not None:
        return finding
    native.progress("kernels")
    last = name_outputs(made[-1].after if made else graph, graph.outputs)
    finding = find_kernel(last, reference, native, allowed)
    if finding is not None:
        return finding
    native.progress("memory")
    return find_overwritten(last, reference, wanted, native, allowed)


def _not_finite(graph: Graph, reference: ReferenceValues) -> list[str]:
    """A note on a model whose reference outputs have NaN or infinities."""
    values = reference.values(graph)
    if all(is_finite(values[o]) for o in graph.outputs):
        return []
    first = next(name for name, value in values.items() if not is_finite(value))
    node = graph.producer.get(first)
    what = "an input or a weight" if node is None else f"{node.op}, node {node.loc.node or first}"
    return [f"the model itself gives NaN or infinity; it first appears in {first} ({what})"]
