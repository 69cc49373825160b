from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tilewright.arith.expr import Var
from tilewright.driver.compiler import Timings, lower
from tilewright.driver.explain import explain_build
from tilewright.ir.graph.nodes import Graph


def _explained(graph: Graph) -> list[str]:
    timings = Timings()
    build = lower(graph, target="aarch64", timings=timings)
    return explain_build(build, timings.passes).splitlines()


def test_passes_kernels_schedules_and_memory() -> None:
    lines = _explained(KERNELS["dense"](16, 16, 16))
    assert "passes," in lines[0]
    assert "1 kernel calls, 1 distinct kernels" in lines
    assert any(line.startswith("matmul_add_relu  x1  [tile]  flops ") for line in lines)
    assert any(line.strip().startswith("vectorize(") for line in lines)
    assert lines[-1].startswith("arena 0 bytes; lower bound 0 (1.000x); weights ")


def test_what_was_not_fused_is_counted_with_the_reason() -> None:
    text = "\n".join(_explained(KERNELS["mlp"](8, 8, 8)))
    assert "pairs not fused" in text
    assert "needed elsewhere" in text or "one anchor" in text


def test_symbolic_sizes_are_said() -> None:
    assert "symbolic sizes taken as" in _explained(KERNELS["mlp"](Var("M"), 8, 8))[-1]
