"""The stage at which one kernel goes wrong: lowering, a schedule step, finalization, or codegen.

Every stage of the kernel, from the loops that lowering gives to the finalized ones that code is
emitted from, is interpreted. Where that would take too long, prefixes of its schedule are compiled
instead: then a step is named, though a later stage may be what goes wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from tilewright.arith.evaluate import evaluate
from tilewright.core.errors import Error
from tilewright.driver.artifact.packed_weights import pack
from tilewright.driver.bisect.native_runner import NativeRunner
from tilewright.driver.bisect.reference_values import INTERPRETED
from tilewright.driver.bisect.report import Finding, group_text, model_nodes
from tilewright.driver.bisect.search import first_wrong
from tilewright.driver.bisect.tolerance import Tolerance
from tilewright.driver.extract_node import extract_node
from tilewright.driver.kernel.backend import ScheduleProvider
from tilewright.finalize.cpu.pipeline import steps as finalize_steps
from tilewright.ir.graph.nodes import Node
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Alloc, Buffer, Func
from tilewright.ir.loop.walk import statements_in
from tilewright.ir.scalar_semantics import undefined
from tilewright.ir.types import Type
from tilewright.lower.lower_kernel import LoweredKernel, lower_group, lower_loops
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.primitives.set_scope import set_scope
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import Trace
from tilewright.target.cpu import CpuTarget

# Bytes that a buffer of a thread may take on its stack.
STACK = 1 << 16


@dataclass(frozen=True)
class KernelCase:
    """A node that is one kernel, what it reads, what it must give, and the sizes of the run."""

    node: Node
    arrays: Sequence[np.ndarray | None]
    types: Sequence[Type | None]
    wanted: Sequence[np.ndarray]
    sizes: Mapping[str, int]
    constants: frozenset[str]

    def error(self, found: Sequence[np.ndarray], allowed: Tolerance) -> float:
        """How far results are off, if that is too far."""
        pairs = zip(found, self.wanted, strict=True)
        return max(allowed.excess(a.reshape(b.shape), b) for a, b in pairs)


@dataclass(frozen=True)
class KernelStage:
    """A kernel after one step of its compilation: the kind and name of the step, and its loops."""

    kind: str
    name: str
    func: Func


@dataclass(frozen=True)
class KernelDefect:
    """What is wrong with a kernel."""

    kind: str
    name: str
    error: float
    details: dict[str, str] = field(default_factory=dict)


def find_in_kernel(case: KernelCase, native: NativeRunner, allowed: Tolerance) -> Finding | None:
    """What is wrong with a kernel; `None` if it is right when run alone."""
    n = case.node
    lowered = lower_group(n.regions[0]) if n.op == "fused" else lower_loops(n, case.types)
    inputs = [p.name for p in lowered.func.params]
    given = [name for name in n.inputs if name]
    packable = frozenset(inputs[i] for i, name in enumerate(given) if name in case.constants)
    scheduled = schedule_func(lowered.func, packable, native.target)
    if evaluate(lowered.flops, case.sizes) <= INTERPRETED:
        found = _by_interpreter(case, _stages(lowered, scheduled, native), native, allowed)
    else:
        found = _by_code(case, scheduled, native, allowed)
    if found is None:
        return None
    details = {"kernel": lowered.func.name, "scheduled by": scheduled.rule, **found.details}
    names, text = model_nodes([n]), group_text(n)
    return Finding(found.kind, found.name, n.name, found.error, text, names, details)


def _by_interpreter(
    case: KernelCase, stages: Sequence[KernelStage], native: NativeRunner, allowed: Tolerance
) -> KernelDefect | None:
    """The first stage that computes something else; the code, if it is wrong and no stage is."""

    def error(number: int) -> float:
        return case.error(_interpret(stages[number].func, case), allowed)

    if not error(len(stages) - 1):
        wrong_code = case.error(_natively(case, native), allowed)
        return KernelDefect("code", stages[0].name, wrong_code) if wrong_code else None
    _, wrong = first_wrong(len(stages), lambda number: bool(error(number)))
    stage = stages[wrong]
    alike = [number for number, other in enumerate(stages) if other.kind == stage.kind]
    step = {"step": f"{alike.index(wrong) + 1} of {len(alike)}"} if len(alike) > 1 else {}
    return KernelDefect(stage.kind, stage.name, error(wrong), step)


def _stages(
    lowered: LoweredKernel, scheduled: ScheduledFunc, native: NativeRunner
) -> list[KernelStage]:
    stages = [KernelStage("lowering", lowered.func.name, lowered.func)]
    sch = Schedule(lowered.func)
    for step in scheduled.trace:
        sch.apply(step)
        stages.append(KernelStage("schedule", str(step), sch.func))
    func = sch.func
    for name, run in finalize_steps(native.target):
        func = run(func)
        stages.append(KernelStage("finalize", name, func))
    return stages


def _interpret(func: Func, case: KernelCase) -> list[np.ndarray]:
    """What loops give; constants are packed as they ask for it, workspaces are made."""
    layouts = dict(func.layouts)
    given = [x for name, x in zip(case.node.inputs, case.arrays, strict=True) if name]
    buffers = {}
    for number, p in enumerate(func.params):
        data = given[number] if number < len(given) else None
        if data is not None and p.name in layouts:
            data = pack(data, layouts[p.name])
        buffers[p.name] = _buffer(p, data, case.sizes)
    run_func(func, buffers, case.sizes)
    return [buffers[name] for name in func.outputs]


def _buffer(p: Buffer, data: np.ndarray | None, sizes: Mapping[str, int]) -> np.ndarray:
    shape = tuple(evaluate(d, sizes) for d in p.shape)
    return np.full(shape, undefined(p.dtype)) if data is None else np.array(data).reshape(shape)


def _by_code(
    case: KernelCase, scheduled: ScheduledFunc, native: NativeRunner, allowed: Tolerance
) -> KernelDefect | None:
    """The first step of the schedule with which the machine code is wrong."""
    steps = scheduled.trace.steps
    errors = {len(steps): case.error(_natively(case, native), allowed)}
    if not errors[len(steps)]:
        return None

    def is_wrong(count: int) -> bool | None:
        part = Trace(steps[:count])

        def cut(func: Func, constants: frozenset[str], target: CpuTarget) -> ScheduledFunc:
            return ScheduledFunc(_off_the_stack(part.replay(func), case), part, scheduled.rule)

        try:
            errors[count] = case.error(_natively(case, native, cut), allowed)
        except (Error, AssertionError):
            return None  # half a schedule need not be one that code can be made of
        return bool(errors[count])

    right, wrong = first_wrong(len(steps) + 1, is_wrong)
    details = {"checked by": "machine code, with the schedule cut short"}
    if wrong == 0:
        return KernelDefect("lowering", scheduled.func.name, errors[0], details)
    between = steps[max(right, 0) : wrong - 1]
    if between:
        details["or"] = "; ".join(map(str, between))
    details["step"] = f"{wrong} of {len(steps)}"
    return KernelDefect("schedule", str(steps[wrong - 1]), errors[wrong], details)


def _natively(
    case: KernelCase, native: NativeRunner, schedule: ScheduleProvider | None = None
) -> list[np.ndarray]:
    graph, inputs = extract_node(case.node, case.arrays, case.types, case.sizes, case.constants)
    return native.run(graph, inputs, schedule=schedule)


def _off_the_stack(func: Func, case: KernelCase) -> Func:
    """`func` with large buffers in the arena: later steps would have made them small."""
    for stmt in statements_in(func.body):
        if isinstance(stmt, Alloc) and stmt.buffer.scope != "global":
            b = stmt.buffer
            if prod(evaluate(d, case.sizes) for d in b.shape) * b.dtype.bytes > STACK:
                func = set_scope(func, b.name, "global")
    return func
