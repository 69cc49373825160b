"""Mistakes behind the graph: in memory, in control flow, in machine code alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.driver.bisect.deep_model import deep_input, deep_model
from tests.ops.control.test_conditional import branch, conditional
from tilewright.driver.bisect.bisect import bisect
from tilewright.driver.bisect.report import Finding
from tilewright.driver.kernel.backend import BACKENDS
from tilewright.driver.program import buffer_assignment
from tilewright.ir.loop.nodes import Func, Stmt, Store
from tilewright.ir.loop.walk import rewrite_stmts
from tilewright.passes.memory.plan_memory import MemoryPlan
from tilewright.target.cpu import CpuTarget


def found(model: object, inputs: dict[str, np.ndarray]) -> Finding:
    report = bisect(model, inputs)
    assert report.finding is not None
    assert report.compilations <= 12
    return report.finding


def negated(func: Func) -> Func:
    """Wrong: what is stored in outputs changes its sign."""

    def store(stmt: Stmt) -> Stmt | None:
        if isinstance(stmt, Store) and stmt.buffer in func.outputs:
            return replace(stmt, value=-stmt.value)
        return None

    return replace(func, body=rewrite_stmts(func.body, store))


def plant_in_code(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    right = BACKENDS["cpu"]

    def wrong(func: Func, dims: Sequence[str], target: CpuTarget, precision: str) -> str:
        made = negated(func) if name in func.name else func
        return right.emit(made, dims, target, precision)

    monkeypatch.setitem(BACKENDS, "cpu", replace(right, emit=wrong))


def test_wrong_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_in_code(monkeypatch, "softmax")
    finding = found(deep_model(3), deep_input())
    assert (finding.kind, finding.name, finding.node) == ("code", "softmax", "y")
    assert finding.model_nodes == ("softmax",)


@pytest.mark.slow
def test_a_value_that_is_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    right = buffer_assignment.plan_memory

    def wrong(*given: Any) -> MemoryPlan:
        plan = right(*given)
        offsets = dict(plan.offsets)
        if "tanh_2" in offsets:  # which is computed from tanh_1
            offsets["tanh_2"] = offsets["tanh_1"]
        return replace(plan, offsets=offsets, peak=plan.peak + 65536)

    monkeypatch.setattr(buffer_assignment, "plan_memory", wrong)
    finding = found(deep_model(5, 40), deep_input(40))
    assert finding.kind == "memory"
    assert finding.node in ("tanh_1", "tanh_2")


def test_control_flow_is_named_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_in_code(monkeypatch, "neg")
    graph = conditional(branch("exp"), branch("neg")).graph("y")
    inputs = {"c": np.array(False), "x": np.ones((2, 3), np.float32)}
    finding = found(graph, {v.name: inputs[v.name] for v in graph.inputs})
    assert (finding.kind, finding.op) == ("kernel", "if")
