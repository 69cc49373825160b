"""Runs a model segment by segment; each is compiled when the values it needs are known.

A run compiles what the values so far allow (see `frontends.onnx.segments.partition`), runs that,
runs operators on the host that no loop program can express, and goes on with the rest. Compiled
segments are kept by the types of the values that they read, and by the values that they were
compiled for; sizes stay symbolic, so that another size needs no further compilation.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import STRING, from_numpy
from tilewright.core.errors import (
    Error,
    ExecutionError,
    FrontendError,
    TypeCheckError,
    UnsupportedError,
)
from tilewright.driver.segmented.profile import timed
from tilewright.driver.segmented.source import HostNode, RemainingGraph, Segment
from tilewright.driver.segmented.string_table import StringTable
from tilewright.frontends.onnx.context import identifier
from tilewright.frontends.onnx.segments.partition import Given, NonTensor
from tilewright.frontends.onnx.segments.pending_node import HostNodeKey
from tilewright.frontends.onnx.segments.symbolic_ints import (
    SymbolicInts,
    can_be_sizes,
    shape_carrier,
)
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import TensorType
from tilewright.runtime.model import CompiledModel

_LOG = logging.getLogger(__name__)

# Plans kept of one part: values that are waited for may be others at every run.
MAX_PLANS = 64
# The codes of errors by which a segment refuses sizes that it was not compiled for.
_OF_SIZES = ("run.symbol", "run.shape", "run.check", "run.too-small")

CompileGraph = Callable[[Graph], CompiledModel]
Values = dict[str, Any]


@dataclass(eq=False)
class _Plan:
    """One segment, compiled, and the program that goes on behind it."""

    segment: Segment
    native: CompiledModel | None
    rest: SegmentExecutor | None


@dataclass(eq=False)
class SegmentExecutor:
    """Nodes to run, and the plans made for them so far."""

    remaining: RemainingGraph
    compile_graph: CompileGraph
    pinned: set[str] = field(default_factory=set)
    sized: set[str] = field(default_factory=set)
    exact: bool = False
    plans: dict[tuple[Any, ...], _Plan] = field(default_factory=dict)
    nested: dict[HostNode, SegmentExecutor] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reads = tuple(sorted(self.remaining.reads()))

    def run(self, values: Values) -> list[Any]:
        """The outputs, computed from values by name."""
        program: SegmentExecutor | None = self
        while program is not None:
            program = program.step(values)
        return [self._value(name, values) for name in self.remaining.outputs]

    def step(self, values: Values) -> SegmentExecutor | None:
        """Run one segment; its results are then among the values. Gives what is left to run."""
        try:
            plan, results = self._native_results(values)
        except ExecutionError as error:
            if self.exact or error.code not in _OF_SIZES:
                raise
            plan, results = self._exact_results(values)
        values.update(results)
        for node in plan.segment.hosts:
            with timed(node):
                self._run_on_host(node, values)
        return plan.rest

    def _native_results(self, values: Values) -> tuple[_Plan, Values]:
        """The plan for some values, and what its native code makes of them."""
        plan = self._plan(values)
        if plan.native is None:
            return plan, {}
        with timed(plan.native):
            return plan, self._run_natively(plan.native, plan.segment, values)

    def _exact_results(self, values: Values) -> tuple[_Plan, Values]:
        """The same for just these sizes: either they do fit, or the error names the node."""
        self.exact = True
        try:
            return self._native_results(values)
        except Error:
            self.exact = False
            raise

    def _run_natively(self, native: CompiledModel, segment: Segment, values: Values) -> Values:
        """The results of a segment, by name; texts go in and out as their numbers in a table."""
        texts = StringTable()
        known = {**segment.texts, **values}
        for name, (source, places) in segment.carriers.items():
            known[name] = shape_carrier(self._value(source, values), places)
        given = (texts.numbers(self._value(name, known)) for name in segment.inputs)
        found = native(*given)
        results = zip(found if isinstance(found, tuple) else (found,), native.outputs, strict=True)
        read = (texts.texts(a) if port.dtype == STRING else a for a, port in results)
        return dict(zip(segment.outputs, read, strict=True))

    def _plan(self, values: Values) -> _Plan:
        present = [name for name in self.reads if name in values]
        plan = self.plans.get(self._key(present, values))
        if plan is None:
            plan = self._make(present, values)
            if len(self.plans) >= MAX_PLANS:
                _close(self.plans.pop(next(iter(self.plans))))
            self.plans[self._key(present, values)] = plan
        return plan

    def executables(self) -> Iterator[CompiledModel]:
        """The segments that are compiled, in the order of a run."""
        return (plan.native for plan in _plans(self) if plan.native is not None)

    def host_nodes(self) -> Iterator[HostNodeKey]:
        """The nodes that runs so far have given to the host."""
        return (node.key for plan in _plans(self) for node in plan.segment.hosts)

    def _key(self, present: Iterable[str], values: Values) -> tuple[Any, ...]:
        return tuple((name, self._form(name, values[name])) for name in present)

    def _form(self, name: str, value: Any) -> Any:
        """What a plan depends on: the type of an array up to its sizes, or its content."""
        if not isinstance(value, np.ndarray):
            return type(value)
        if self._is_pinned(name, value):
            return value.dtype.str, value.shape, value.tobytes()
        if name in self.sized:
            return value.dtype.str, value.shape, SymbolicInts(value).form()
        sizes = value.shape if self.exact else (s if s < 2 else -1 for s in value.shape)
        return value.dtype.str, tuple(sizes)

    def _make(self, present: Sequence[str], values: Values) -> _Plan:
        try:
            segment = self._segment(present, values)
        except (FrontendError, TypeCheckError, UnsupportedError):
            # what does not fit sizes that may be anything may fit those that are there
            if self.exact:
                raise
            segment = self._exact_segment(present, values)
        if _is_stuck(segment) and not self.exact:
            segment = self._exact_segment(present, values)
        if _is_stuck(segment):
            raise _stuck(segment)
        if segment.rest.nodes or segment.hosts:
            _LOG.info("graph break: %s", _why_broken(segment))
        native = None if segment.graph is None else self.compile_graph(segment.graph)
        rest = SegmentExecutor(segment.rest, self.compile_graph) if segment.rest.nodes else None
        return _Plan(segment, native, rest)

    def _exact_segment(self, present: Sequence[str], values: Values) -> Segment:
        """The segment for just these sizes; if it can be made, so are all that follow."""
        self.exact = True
        try:
            return self._segment(present, values)
        except Error:
            self.exact = False
            raise

    def _segment(self, present: Sequence[str], values: Values) -> Segment:
        """The segment that the values allow; those that it must know are pinned from now on."""
        while True:
            given = {name: self._given(name, values[name]) for name in present}
            segment = self.remaining.segment(given)
            known = segment.wants & {*present} - self.pinned
            sizes = segment.sizes & {*present} - self.pinned - self.sized
            if not known and not sizes:
                return segment
            self.pinned |= known
            self.sized |= sizes

    def _given(self, name: str, value: Any) -> Given:
        if value is None:
            return None
        if not isinstance(value, np.ndarray):
            return NonTensor()
        if self._is_pinned(name, value):
            return value
        if name in self.sized:
            return SymbolicInts(value)
        return _type(name, value, self.exact)

    def _is_pinned(self, name: str, value: np.ndarray) -> bool:
        """Whether a segment is made for just this value."""
        as_size = not self.exact and can_be_sizes(value)
        return name in self.pinned or (name in self.sized and not as_size)

    def _run_on_host(self, node: HostNode, values: Values) -> None:
        def nested(graph: Any, given: Mapping[str, Any]) -> Sequence[Any]:
            return self._nested(node, graph, values).run({**values, **given})

        values.update(node.run(lambda name: self._value(name, values), nested))

    def _value(self, name: str, values: Values) -> Any:
        if not name:
            return None
        return values[name] if name in values else self.remaining.constant(name)

    def _nested(self, node: HostNode, graph: Any, values: Values) -> SegmentExecutor:
        found = self.nested.get(node)
        if found is None:
            remaining = self.remaining.nested(node, graph, set(values))
            found = self.nested[node] = SegmentExecutor(remaining, self.compile_graph)
        return found


def _plans(root: SegmentExecutor | _Plan) -> Iterator[_Plan]:
    """All plans, in the order of a run."""
    pending = [root]  # segments may follow one another deeper than functions may call
    while pending:
        one = pending.pop()
        if isinstance(one, SegmentExecutor):
            pending += reversed([*one.plans.values(), *one.nested.values()])
            continue
        yield one
        if one.rest is not None:
            pending.append(one.rest)


def _close(plan: _Plan) -> None:
    for one in _plans(plan):
        if one.native is not None:
            one.native.close()


def _type(name: str, value: np.ndarray, exact: bool) -> TensorType:
    """The type of an array; unless `exact`, sizes are symbolic but for 0 and 1: they broadcast."""
    base = identifier(name).replace(".", "_")
    shape = (
        const(size) if exact or size < 2 else Var(f"{base}_{axis}")
        for axis, size in enumerate(value.shape)
    )
    return TensorType(from_numpy(value.dtype), tuple(shape))


def _is_stuck(segment: Segment) -> bool:
    """Whether nodes are left, but none that can run."""
    return segment.graph is None and not segment.hosts and bool(segment.rest.nodes)


def _why_broken(segment: Segment) -> str:
    """Why a segment ends where it does: operators on the host, or values that are waited for."""
    reasons = []
    if segment.hosts:
        names = dict.fromkeys(node.op_type for node in segment.hosts)
        reasons.append(f"{', '.join(names)} on the host")
    if segment.rest.nodes:
        wants = ", ".join(sorted(segment.wants | segment.sizes))
        waiting = f" until {wants} is known" if wants else ""
        reasons.append(f"{len(segment.rest.nodes)} nodes wait{waiting}")
    return "; ".join(reasons)


def _stuck(segment: Segment) -> UnsupportedError:
    p = segment.rest.nodes[0]
    wants = ", ".join(sorted(segment.wants | segment.sizes)) or ", ".join(sorted(p.reads))
    return UnsupportedError(
        "onnx.waiting", f"{p.op_type} waits for {wants}, which nothing gives", loc=p.loc
    )
