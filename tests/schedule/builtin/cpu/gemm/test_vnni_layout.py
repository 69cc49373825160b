from __future__ import annotations

from tests.schedule.builtin.cpu.gemm.bf16_products import kernel, product
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.analysis.gemm import match_bf16_gemm, operand_load
from tilewright.schedule.builtin.cpu.gemm.vnni_layout import pack_vnni
from tilewright.schedule.schedule import Schedule


def test_two_elements_of_k_lie_side_by_side() -> None:
    func, constants, _ = kernel(product(8, 32, 48))
    (block,) = (b for b in block_graph(func).blocks if reductions(b))
    gemm = match_bf16_gemm(block, constants)
    assert gemm is not None
    b, sch = operand_load(gemm.b), Schedule(func)
    pack_vnni(sch, b, gemm.k[0], gemm.n[0], 16)
    (packed,) = (p for p in sch.func.params if p.name == b.buffer)
    assert [str(size) for size in packed.shape] == ["3", "16", "16", "2"]
