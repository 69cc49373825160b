from __future__ import annotations

from tests.schedule.builtin.cpu.gemm.bf16_products import kernel, product, weights
from tests.schedule.programs import conv, dense, softmax
from tilewright.core.dtypes import BF16, F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.walk import find_block
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.analysis.gemm import (
    GemmAxes,
    is_im2col,
    match_bf16_gemm,
    match_gemm,
    operand_load,
    transposed_gemm,
)


def test_matrices() -> None:
    gemm = match_gemm(find_block(dense(), "mm"))
    assert gemm is not None
    assert [it.name for it in gemm.m] == ["i0"]
    assert [it.name for it in gemm.n] == ["i1"]
    assert operand_load(gemm.a).buffer == "x"
    assert operand_load(gemm.b).buffer == "w"
    assert not gemm.batch


def test_the_transposed_product() -> None:
    gemm = match_gemm(find_block(dense(), "mm"))
    assert gemm is not None
    other = transposed_gemm(gemm)
    assert (other.m, other.n) == (gemm.n, gemm.m)
    assert (other.a, other.b) == (gemm.b, gemm.a)
    assert transposed_gemm(other) == gemm


def test_a_convolution_has_the_last_axis_of_its_result_as_columns() -> None:
    gemm = match_gemm(find_block(conv(), "conv"))
    assert gemm is not None
    # One place of the window after the other, each with all channels.
    assert [str(it.extent) for it in gemm.k] == ["3", "N"]
    assert operand_load(gemm.a).buffer == "w"


def test_windows_overlap() -> None:
    gemm = match_gemm(find_block(conv(), "conv"))
    assert gemm is not None
    assert is_im2col(gemm.b, gemm.n, gemm.k)
    assert not is_im2col(gemm.a, gemm.m, gemm.k)


def test_other_sums_are_none() -> None:
    assert match_gemm(find_block(softmax(), "s")) is None
    assert match_gemm(find_block(softmax(), "y")) is None


def _bf16_gemm(graph: Graph) -> GemmAxes | None:
    func, constants, _ = kernel(graph)
    (block,) = (b for b in block_graph(func).blocks if reductions(b))
    return match_bf16_gemm(block, constants)


def test_the_bf16_gemm_of_a_product() -> None:
    gemm = _bf16_gemm(product(8, 32, 16))
    assert gemm is not None
    assert [str(it.extent) for it in (*gemm.m, *gemm.n, *gemm.k)] == ["8", "16", "32"]
    assert gemm.batch == ()


def test_one_row_has_no_row_axis() -> None:
    gemm = _bf16_gemm(product(1, 32, 16))
    assert gemm is not None
    assert gemm.m == ()


def test_only_products_of_bf16_with_a_constant() -> None:
    g = GraphBuilder("computed")
    x, y = g.input("x", tensor(BF16, 8, 32)), g.input("y", tensor(BF16, 32, 16))
    assert _bf16_gemm(g.graph(g.add("matmul_f32out", x, y))) is None
    g = GraphBuilder("wide")
    x = g.input("x", tensor(F32, 8, 32))
    w = g.constant(weights(32, 16).astype("float32"))
    assert _bf16_gemm(g.graph(g.add("matmul", x, w))) is None
    g = GraphBuilder("narrow")  # the sum itself is rounded
    x = g.input("x", tensor(BF16, 8, 32))
    assert _bf16_gemm(g.graph(g.add("matmul", x, g.constant(weights(32, 16))))) is not None
