from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tilewright.arith.expr import Var
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.driver.report.explain import explain_build, place_lines, schedule_line
from tilewright.driver.report.step_rows import step_rows
from tilewright.ir.graph.nodes import Graph
from tilewright.runtime.roofline.roofline import Level, Roofline


def _explained(graph: Graph, roofline: Roofline | None = None) -> list[str]:
    build = lower(graph, make_options(target="aarch64"))
    return explain_build(build, step_rows(build), roofline).splitlines()


def test_passes_kernels_schedules_and_memory() -> None:
    lines = _explained(KERNELS["dense"](16, 16, 16))
    assert "passes," in lines[0]
    assert "1 kernel calls, 1 distinct kernels" in lines
    start = "matmul_add_relu  x1  [register_blocked: one reduction"
    assert any(line.startswith(start) for line in lines)
    assert any(line.startswith("    flops 8960, bytes ") for line in lines)
    assert any(line.startswith("    computes ") for line in lines)
    assert any(line.strip().startswith("vectorize(") for line in lines)
    assert lines[-1].startswith("arena 0 bytes; lower bound 0 (1.000x); weights ")


def test_what_was_not_fused_is_counted_with_the_reason() -> None:
    text = "\n".join(_explained(KERNELS["mlp"](8, 8, 8)))
    assert "pairs not fused" in text
    assert "needed elsewhere" in text or "one anchor" in text


def test_symbolic_sizes_are_said() -> None:
    assert "symbolic sizes taken as" in _explained(KERNELS["mlp"](Var("M"), 8, 8))[-1]


def test_with_roofs_each_kernel_has_a_bound() -> None:
    roofline = Roofline(1, {"f32": 8960e3}, (Level("memory", float("inf"), 1e12),))
    lines = _explained(KERNELS["dense"](16, 16, 16), roofline)
    assert any(line.endswith("; 1.0000 ms at least, by compute") for line in lines)


def test_lines_about_a_kernel() -> None:
    schedule = {"rule": "rows", "why": "sums", "decisions": ["vectors of 4", "two"]}
    assert schedule_line(schedule) == "[rows: sums]  vectors of 4; two"
    places = [
        {"nodes": ["a (conv)"], "unfused_reason": ["x", "y"]},
        {"nodes": ["b (conv)"], "unfused_reason": ["x"]},
    ]
    assert list(place_lines(places)) == [
        "computes a (conv), and 1 more places",
        "unfused: x (2 times)",
        "unfused: y",
    ]
