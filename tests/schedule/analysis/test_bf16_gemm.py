from __future__ import annotations

from tests.schedule.builtin.cpu.gemm.bf16_products import kernel, product, weights
from tilewright.core.dtypes import BF16, F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.analysis.bf16_gemm import Bf16Gemm, match_bf16_gemm
from tilewright.schedule.analysis.blocks import block_graph, reductions


def _roles(graph: Graph) -> Bf16Gemm | None:
    func, constants, _ = kernel(graph)
    (block,) = (b for b in block_graph(func).blocks if reductions(b))
    return match_bf16_gemm(block, constants)


def test_the_roles_of_a_product() -> None:
    gemm = _roles(product(8, 32, 16))
    assert gemm is not None
    assert gemm.m is not None
    assert [str(it.extent) for it in (gemm.m, gemm.n, gemm.k)] == ["8", "16", "32"]
    assert gemm.batch == ()


def test_one_row_has_no_row_axis() -> None:
    gemm = _roles(product(1, 32, 16))
    assert gemm is not None
    assert gemm.m is None


def test_only_products_of_bf16_with_a_constant() -> None:
    g = GraphBuilder("computed")
    x, y = g.input("x", tensor(BF16, 8, 32)), g.input("y", tensor(BF16, 32, 16))
    assert _roles(g.graph(g.add("matmul_f32out", x, y))) is None
    g = GraphBuilder("wide")
    x = g.input("x", tensor(F32, 8, 32))
    w = g.constant(weights(32, 16).astype("float32"))
    assert _roles(g.graph(g.add("matmul", x, w))) is None
    g = GraphBuilder("narrow")  # the sum itself is rounded
    x = g.input("x", tensor(BF16, 8, 32))
    assert _roles(g.graph(g.add("matmul", x, g.constant(weights(32, 16))))) is not None
