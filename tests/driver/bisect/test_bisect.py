"""Mistakes planted in every stage are found, in few compilations, with the node they are in."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

import numpy as np
import pytest

from tests.driver.bisect.deep_model import LAYERS, deep_input, deep_model, width
from tests.frontends.onnx.segments.segmented_models import RESHAPED
from tilewright.driver.bisect import kernel_stages
from tilewright.driver.bisect.bisect import bisect
from tilewright.driver.bisect.report import BisectReport, Finding
from tilewright.ir.graph.nodes import Constant, Graph, Node
from tilewright.ir.loop.nodes import For, Func, Stmt
from tilewright.ir.loop.walk import rewrite_stmts
from tilewright.passes import fuse
from tilewright.passes.algebra import simplify_algebra
from tilewright.passes.canonicalize import cse
from tilewright.passes.rewriter import Rewriter
from tilewright.schedule import schedule
from tilewright.schedule.primitives.table import rewrite_of

MAX_COMPILATIONS = 12


def found(report: BisectReport) -> Finding:
    assert report.finding is not None
    assert report.compilations <= MAX_COMPILATIONS
    assert max(report.errors.values()) > report.tolerance
    return report.finding


@pytest.mark.parametrize(("layers", "rows"), [(LAYERS, 3), (2, "N")])
def test_a_right_model(layers: int, rows: int | str) -> None:
    report = bisect(deep_model(layers, rows), deep_input())
    assert report.finding is None
    assert report.compilations == 1
    assert report.errors["y"] < 1e-5
    assert "nothing changes a result" in report.text()


def test_a_wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    right = simplify_algebra._applied

    def wrong(g: Rewriter, n: Node) -> str | None:
        if n.name == "mul_9":  # x * sigmoid(x) loses its first factor
            g.applied.append("planted")
            return n.inputs[1]
        return right(g, n)

    monkeypatch.setattr(simplify_algebra, "_applied", wrong)
    finding = found(bisect(deep_model(), deep_input()))
    assert (finding.kind, finding.name, finding.node) == ("pass", "simplify_algebra", "mul_9")
    assert finding.model_nodes == ("mul_9",)
    assert finding.details["rule"] == "planted"
    assert finding.details["became"] == "sigmoid(%add_9)"


def test_a_pass_that_keeps_no_record(monkeypatch: pytest.MonkeyPatch) -> None:
    def plant(name: str) -> None:
        right = getattr(cse, name)

        def wrong(c: Constant) -> Hashable:
            return "one" if c.name in ("b7", "b7_copy") else right(c)

        monkeypatch.setattr(cse, name, wrong)

    model = deep_model()
    copy = model.graph.initializer.add()
    copy.CopyFrom(next(t for t in model.graph.initializer if t.name == "b7"))
    copy.name = "b7_copy"
    copy.raw_data = (np.frombuffer(copy.raw_data, np.float32) + 1).tobytes()
    next(n for n in model.graph.node if n.name == "mul_7").input[0] = "b7_copy"
    plant("_identity")
    plant("_glance")
    finding = found(bisect(model, deep_input()))
    assert (finding.kind, finding.name, finding.node) == ("pass", "cse", "mul_7")


def test_a_wrong_fusion(monkeypatch: pytest.MonkeyPatch) -> None:
    right = fuse._canonical

    def wrong(nodes: list[Node], *rest: object) -> Graph:
        group = right(nodes, *rest)  # type: ignore[arg-type]
        if "tanh_9" not in [n.name for n in nodes]:
            return group
        without_bias = [
            replace(n, op="identity", inputs=n.inputs[:1]) if n.op == "add" else n
            for n in group.nodes
        ]
        return replace(group, nodes=tuple(without_bias))

    monkeypatch.setattr(fuse, "_canonical", wrong)
    finding = found(bisect(deep_model(), deep_input()))
    assert (finding.kind, finding.name, finding.node) == ("fusion", "fuse", "tanh_9")
    assert finding.op == "matmul+identity+swish+tanh"
    assert finding.model_nodes == ("matmul_9", "add_9", "mul_9", "tanh_9")


def is_of_layer(func: Func, layer: int) -> bool:
    return any(str(d) == str(width(layer)) for d in func.params[-1].shape[-1:])


def plant_in_schedule(monkeypatch: pytest.MonkeyPatch, step: str, layer: int) -> None:
    """After this step a loop of the layer's kernel misses its last iteration."""

    def wrong(name: str) -> Callable[..., Func]:
        right = rewrite_of(name)

        def shortened(func: Func, *args: object) -> Func:
            result = right(func, *args)
            if name != step or not is_of_layer(func, layer) or args[0] != "matmul.i0.2":
                return result

            def loop(stmt: Stmt) -> Stmt | None:
                if isinstance(stmt, For) and stmt.name == args[0]:
                    return replace(stmt, extent=stmt.extent - 1)
                return None

            return replace(result, body=rewrite_stmts(result.body, loop))

        return shortened

    monkeypatch.setattr(schedule, "rewrite_of", wrong)


def test_a_wrong_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    plant_in_schedule(monkeypatch, "unroll", 9)
    finding = found(bisect(deep_model(), deep_input()))
    assert (finding.kind, finding.node) == ("schedule", "tanh_9")
    assert finding.name == 'unroll("matmul.i0.2")'
    assert finding.model_nodes == ("matmul_9", "add_9", "mul_9", "tanh_9")
    assert finding.details["kernel"].startswith("matmul_add_swish_tanh")


def test_a_wrong_schedule_of_a_kernel_too_long_to_interpret(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant_in_schedule(monkeypatch, "unroll", 9)
    monkeypatch.setattr(kernel_stages, "INTERPRETED", 0)
    finding = found(bisect(deep_model(), deep_input()))
    assert (finding.kind, finding.node) == ("schedule", "tanh_9")
    assert finding.name == 'unroll("matmul.i0.2")'


def test_a_stage_that_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    right = simplify_algebra._applied

    def wrong(g: Rewriter, n: Node) -> str | None:
        return n.inputs[0] if n.op == "neg" else right(g, n)

    monkeypatch.setattr(simplify_algebra, "_applied", wrong)
    inputs = {"x": np.ones(12, np.float32), "parts": np.array([3, 1])}
    finding = found(bisect(RESHAPED, inputs))
    assert (finding.kind, finding.name, finding.op) == ("pass", "simplify_algebra", "neg")
    assert finding.details["segment"] == "2"


def test_a_model_that_gives_nan_itself() -> None:
    model = deep_model(2)
    next(n for n in model.graph.node if n.name == "tanh_1").op_type = "Log"
    report = bisect(model, deep_input())
    assert report.finding is None
    assert "first appears in tanh_1 (log, node tanh_1)" in report.notes[0]
