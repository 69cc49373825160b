"""The oracle: the expected result of a model, and its tolerance.

The answer is the interpreter's. How far a compiled result may lie from it follows from the
operators: the model is interpreted again with everything inexact perturbed by a few ulps
(`rounding_perturbation.py`), and what that does to an output is what rounding may do to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import onnx

from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import Error
from tilewright.driver.artifact.manifest import graph_ports
from tilewright.driver.segmented.model import SegmentedModel
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.frontends.onnx.segments.data_dependent import DataDependent
from tilewright.frontends.onnx.segments.source import OnnxSegmentSource
from tilewright.fuzz.random_values import finfo, is_float
from tilewright.fuzz.rounding_perturbation import PerturbedEvaluator
from tilewright.ir.graph.nodes import Graph
from tilewright.ops.interpret import Step, evaluate_node, run_outputs
from tilewright.runtime.binding import Port
from tilewright.runtime.cpu.executable import Executable
from tilewright.target.cpu import CpuTarget
from tilewright.target.registry import resolve_cpu

# How often the largest movement seen may be exceeded.
MOVEMENT_FACTOR = 8.0

Outputs = list[Any]
Interpreter = Callable[[Mapping[str, np.ndarray], Step], Outputs]


def interpreter(model: onnx.ModelProto) -> Interpreter:
    """The model, ready to be interpreted; a model that cannot be read is an Error."""
    try:
        graph = import_onnx(model)
    except DataDependent:
        return lambda inputs, step: _run_segmented(model, inputs, step)
    return lambda inputs, step: _run(graph, inputs, step)


def _run(graph: Graph, inputs: Mapping[str, np.ndarray], step: Step) -> Outputs:
    with np.errstate(all="ignore"):
        return list(run_outputs(graph, inputs, step=step))


def _run_segmented(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray], step: Step) -> Outputs:
    """A model that is compiled while it runs, its segments interpreted."""

    def interpreted(graph: Graph) -> Executable:
        return cast(Executable, _Interpreted(graph, step))

    return list(SegmentedModel(OnnxSegmentSource(model), interpreted).run(inputs).values())


class _Interpreted:
    """Stands in for the executable of a stage."""

    def __init__(self, graph: Graph, step: Step) -> None:
        self.graph = graph
        self.step = step
        self.outputs = [Port.from_manifest(port) for port in graph_ports(graph)[1]]

    def __call__(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        given = {v.name: a for v, a in zip(self.graph.inputs, arrays, strict=True)}
        return tuple(_run(self.graph, given, self.step))


@dataclass
class Expected:
    """The interpreter's outputs, and for each how far other roundings of it lie from it."""

    outputs: Outputs
    spread: list[np.ndarray | None]
    exact: bool


def expect(
    run: Interpreter,
    inputs: Mapping[str, np.ndarray],
    tries: int = 3,
    machine: CpuTarget | None = None,
) -> Expected:
    """Interpret a model `tries` times more, with results perturbed as `machine` may.

    An output without a spread is one whose shape depends on rounding, as are all where that leads
    to an error.
    """
    flushes = bool((machine or resolve_cpu("native")).bf16_gemm)
    outputs = run(inputs, evaluate_node)
    spread: list[np.ndarray | None] = [np.zeros(np.shape(x)) for x in outputs]
    exact = False
    for seed in range(tries):
        perturbed = PerturbedEvaluator(seed, flushes)
        try:
            others = run(inputs, perturbed)
        except Error:
            return Expected(outputs, [None for _ in outputs], False)
        exact = exact or not perturbed.count
        pairs = zip(spread, outputs, others, strict=True)
        spread = [_widened(s, x, y) for s, x, y in pairs]
        if exact:
            break
    return Expected(outputs, spread, exact)


def _widened(spread: np.ndarray | None, x: Any, y: Any) -> np.ndarray | None:
    if spread is None or np.shape(x) != np.shape(y):
        return None
    if not isinstance(x, np.ndarray) or x.dtype.kind in "OUS":
        return spread
    return np.asarray(np.maximum(spread, distance(x, y)))


def distance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How far elements lie apart: 0 if equal or both NaN, infinite if only one is not finite."""
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    a, b = x.astype(wide), y.astype(wide)
    with np.errstate(all="ignore"):
        error = np.abs(a - b)
        same = (x == y) | (np.isnan(a) & np.isnan(b))
    # 64 bits do not fit into a float, so integers that differ may seem the same there
    least = 1.0 if x.dtype.kind in "iub" else float(np.finfo(np.float64).smallest_subnormal)
    error = np.where(np.isfinite(error), np.maximum(error, least), np.inf)
    return np.where(same, 0.0, error)


def mismatch(found: Any, expected: Any, spread: np.ndarray | None, exact: bool) -> str:
    """What is wrong with an output, or nothing."""
    if not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray):
        return "" if _same(found, expected) else f"got {found!r}, expected {expected!r}"
    if found.dtype != expected.dtype:
        return f"is {found.dtype}, expected {expected.dtype}"
    if spread is None:
        return ""
    if found.shape != expected.shape:
        return f"has shape {found.shape}, expected {expected.shape}"
    if expected.dtype.kind in "OUS":
        return "" if np.array_equal(found, expected) else "has other texts"
    bad = distance(found, expected) > _allowed(expected, spread, exact)
    if not bad.any():
        return ""
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(bad)), bad.shape))
    return f"{int(bad.sum())} of {bad.size} differ, at {list(at)} {found[at]} for {expected[at]}"


def _allowed(expected: np.ndarray, spread: np.ndarray, exact: bool) -> np.ndarray:
    small = from_numpy(expected.dtype).is_small
    if exact or small or not (is_float(expected.dtype) or expected.dtype.kind == "c"):
        return MOVEMENT_FACTOR * spread
    info = finfo(expected.real.dtype)
    size = np.abs(expected.astype(np.complex128))
    size = np.where(np.isfinite(size), size, 0.0)
    last = float(info.eps) * size + float(info.smallest_subnormal)
    return MOVEMENT_FACTOR * (spread + last)


def _same(found: Any, expected: Any) -> bool:
    if isinstance(expected, list | tuple):
        together = isinstance(found, list | tuple) and len(found) == len(expected)
        return together and all(map(_same, found, expected))
    if isinstance(expected, np.ndarray):
        return isinstance(found, np.ndarray) and not mismatch(found, expected, np.zeros(1), False)
    return bool(found == expected)
