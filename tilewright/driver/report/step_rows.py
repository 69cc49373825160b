"""The steps of a built model as the manifest lists them: what each does, where it comes from.

A step says which nodes of the model its kernel computes, and for the nodes around it why they are
kernels of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.arith.expr import Expr, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.driver.model_build import BuiltStep, ModelBuild
from tilewright.driver.program.steps import StepSequence
from tilewright.driver.report.schedule_summary import schedule_data
from tilewright.passes.context import WhyNotFused

# Types whose products have instructions of their own.
_NARROW = ("i8", "u8", "bf16", "f16")

StepRow = dict[str, Any]
_VIEW = " is view"  # the end of a reason that costs nothing: a view is no kernel


def step_rows(build: ModelBuild) -> list[StepRow]:
    """One row a step, with the reasons why its neighbours were not fused with it."""
    reasons = _reasons(build.log.not_fused)
    return [_row(build.program, step, reasons) for step in build.steps]


def rows_by_kernel(rows: Sequence[StepRow]) -> dict[str, list[StepRow]]:
    """The rows of each kernel, by its name."""
    found: dict[str, list[StepRow]] = {}
    for row in rows:
        found.setdefault(row["name"], []).append(row)
    return found


def schedules(build: ModelBuild) -> dict[str, dict[str, Any]]:
    """How each kernel was scheduled."""
    return {name: schedule_data(kernel) for name, kernel in build.distinct_kernels.items()}


def _row(program: StepSequence, step: BuiltStep, reasons: Mapping[str, list[str]]) -> StepRow:
    kernel = step.kernel
    row: StepRow = {
        "name": kernel.name,
        "flops": _number(kernel.flops),
        "bytes": _number(kernel.bytes),
        "weights": _number(_weights(program, step)),
        "nodes": step_nodes(step),
    }
    unfused = dict.fromkeys(why for value in step.node.outputs for why in reasons.get(value, ()))
    if unfused:
        row["unfused_reason"] = list(unfused)
    narrow = [p.dtype.name for p in kernel.scheduled.func.params if p.dtype.name in _NARROW]
    return {**row, "element": narrow[0]} if narrow else row


def step_nodes(step: BuiltStep) -> list[str]:
    """The nodes of the model that a step computes, each with what was made of it."""
    inner = [n for region in step.node.regions for n in region.nodes] or [step.node]
    found: dict[str, list[str]] = {}
    for n in inner:
        found.setdefault(n.loc.node or n.name, []).append(n.op)
    return [f"{name} ({', '.join(ops)})" for name, ops in found.items()]


def _weights(program: StepSequence, step: BuiltStep) -> Expr:
    """The bytes of a step that are constants of the model."""
    given = [v for v in step.node.inputs if v]
    total: Expr = const(0)
    for name, moved in zip(given, step.kernel.param_bytes, strict=False):
        if program.base_buffer(name) in program.constants:
            total = total + moved
    return simplify(total)


def _reasons(not_fused: Sequence[WhyNotFused]) -> dict[str, list[str]]:
    """Why the value of a node did not become part of the kernel that reads it."""
    found: dict[str, list[str]] = {}
    for pair in not_fused:
        if pair.reason.endswith(_VIEW):
            continue
        op, _, value = pair.producer.partition(" ")
        reader = pair.consumer.partition(" ")[0]
        found.setdefault(value, []).append(f"{op} and {reader}: {pair.reason}")
    return found


def _number(value: Expr) -> int | str:
    number = as_int(value)
    return str(value) if number is None else number
