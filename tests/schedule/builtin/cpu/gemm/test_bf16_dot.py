"""Products of pairs of bf16: the schedule keeps their meaning, the instruction is used."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.codegen.native_func import sizes_of
from tests.for_each import for_each
from tests.schedule.builtin.cpu.gemm.bf16_products import interpreted, product, scheduled
from tilewright.arith.expr import Var
from tilewright.codegen.cpu.parallel import emit_func
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.ops.interpret import run_graph
from tilewright.target.registry import CPUS

MACHINES = [("sapphirerapids", "vdpbf16ps"), ("neoverse-v1", "bfdot")]


@pytest.mark.parametrize(("machine", "instruction"), MACHINES)
@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(1, 40, 70), (9, 2, 16), (33, 40, 5), (24, 18, 96)]
)
def test_products_of_any_size(
    machine: str, instruction: str, rows: int, depth: int, columns: int
) -> None:
    graph = product(rows, depth, columns)
    result = scheduled(graph, CPUS[machine])
    assert result.rule == "bf16_dot"
    x = np.random.default_rng(rows).standard_normal((rows, depth)).astype(ml_dtypes.bfloat16)
    expected = run_graph(graph, {"x": x})[graph.outputs[0]]
    found = interpreted(result, graph, x).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    plain = finalize(result.func, CPUS[machine])
    module = ModuleBuilder()
    emit_func(module, plain, sizes_of(plain))
    assert instruction in compile_assembly(module.text(), CPUS[machine])


def test_rows_known_only_when_run() -> None:
    graph = product(Var("N"), 40, 70)
    x = np.random.default_rng(0).standard_normal((13, 40)).astype(ml_dtypes.bfloat16)
    expected = run_graph(graph, {"x": x}, {"N": 13})[graph.outputs[0]]
    found = interpreted(scheduled(graph, CPUS["neoverse-v1"]), graph, x, {"N": 13})
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@for_each("machine", ["neoverse-v1", "aarch64"])
def test_others_are_computed_in_f32(machine: str) -> None:
    depth = 41 if machine == "neoverse-v1" else 40
    assert scheduled(product(9, depth, 16), CPUS[machine]).rule == "register_blocked"
