from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.codegen.native_func import sizes_of
from tests.finalize.kernel_steps import run, sample
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import as_int
from tilewright.codegen.cpu.parallel import emit_func
from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.core.dtypes import F32
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import print_func
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.analysis.blocks import block_graph, reductions, spatial
from tilewright.schedule.builtin.cpu.attention_amx import is_amx_gemm
from tilewright.schedule.builtin.cpu.select_rule import schedule_func
from tilewright.target.registry import CPUS

AMX = CPUS["sapphirerapids"]


def _attention(queries: int, keys: int, size: int, values: int, right: int = -1) -> Graph:
    g = GraphBuilder("f")
    shapes = ((1, queries, size), (1, keys, size), (1, keys, values))
    operands = [g.input(n, tensor(F32, *s)) for n, s in zip("qkv", shapes, strict=True)]
    attrs = FusedAttentionAttrs(scale=0.125, window_right=right, bf16_operands=True)
    return g.graph(g.add("fused_attention", *operands, attrs=attrs))


@pytest.mark.parametrize(
    ("queries", "keys", "size", "values", "right"),
    [(33, 20, 32, 32, -1), (20, 33, 32, 32, 0), (5, 6, 64, 64, -1)],
)
def test_both_products_of_attention_use_the_unit(
    queries: int, keys: int, size: int, values: int, right: int
) -> None:
    ((func, _),) = sources(_attention(queries, keys, size, values, right))
    result = schedule_func(func, frozenset(), replace(AMX, cores=queries % 2 + 1))
    assert result.rule == "attention"
    assert print_func(result.func).count('using "amx_bf16_2x2"') == 2
    arrays = sample(func, {})
    expected, found = run(func, arrays, {})["y0"], run(result.func, arrays, {})["y0"]
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-3)


def test_the_instruction_is_emitted_for_both() -> None:
    ((func, _),) = sources(_attention(64, 64, 64, 64))
    plain = finalize(schedule_func(func, frozenset(), AMX).func, AMX)
    module = ModuleBuilder(native_bf16="x86_64")
    emit_func(module, plain, sizes_of(plain))
    assert compile_assembly(module.text(), AMX).count("tdpbf16ps") == 8


def test_what_the_unit_multiplies() -> None:
    ((func, _),) = sources(_attention(64, 48, 32, 32))
    structure = block_graph(func)
    products = [b for b in structure.blocks if b.name.endswith(".unit")]
    copies = [structure.consumers(b.writes[0].buffer)[-1] for b in products]
    for product, copy in zip(products, copies, strict=True):
        assert as_int(spatial(product)[-1].extent) % 32 == 0
        assert as_int(reductions(product)[0].extent) % 32 == 0
        assert is_amx_gemm(product, copy, AMX)
        assert not is_amx_gemm(product, copy, CPUS["x86-64-v4"])
        assert not is_amx_gemm(product, product, AMX)
