from __future__ import annotations

from tests.differential.kernel_graphs import KERNELS
from tilewright.arith.expr import Var
from tilewright.driver.compiler import lower
from tilewright.driver.explain import explain_build


def test_kernels_schedules_and_memory() -> None:
    text = explain_build(lower(KERNELS["dense"](16, 16, 16), target="aarch64"))
    head, kernel, *rest = text.splitlines()
    assert head == "1 kernel calls, 1 distinct kernels"
    assert kernel.startswith("matmul_add_relu  x1  [tile]  flops ")
    assert any(line.strip().startswith("vectorize(") for line in rest)
    assert rest[-1].startswith("arena 0 bytes; lower bound 0 (1.000x); weights ")


def test_symbolic_sizes_are_said() -> None:
    text = explain_build(lower(KERNELS["mlp"](Var("M"), 8, 8), target="aarch64"))
    assert "symbolic sizes taken as" in text
