from __future__ import annotations

import numpy as np

from tests.differential.native import random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_GPU
from tilewright.core.dtypes import F16, F32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.graph.verify import verify_graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.ops.typecheck import check_types
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.layout.align_gemm_operands import align_gemm_operands


def _product(
    m: int, n: int, k: int, dtype: DType = F16, transposed: bool = False, constant: bool = False
) -> Graph:
    g = GraphBuilder("f")
    x = g.input("x", tensor(dtype, 2, m, k))
    shape = (n, k) if transposed else (k, n)
    weights = np.random.default_rng(k).standard_normal(shape).astype(dtype.numpy)
    y = g.constant(weights) if constant else g.input("y", tensor(dtype, *shape))
    if transposed:
        y = g.add("transpose", y, attrs=make_attrs("transpose", {"perm": (1, 0)}))
    return g.graph(g.add("matmul", x, y))


@for_each(
    ("graph", "ops"),
    [
        (_product(16, 16, 130), ["pad", "pad", "matmul"]),
        (_product(16, 19, 130), ["pad", "pad", "matmul", "slice"]),
        (_product(16, 19, 136), ["pad", "matmul", "slice"]),
        (_product(17, 24, 131, transposed=True), ["pad", "pad", "transpose", "matmul"]),
        (_product(16, 16, 129, constant=True), ["pad", "matmul"]),
        (_product(8, 16, 129, constant=True), ["pad", "matmul"]),
    ],
)
def test_a_long_k_becomes_whole_vectors(graph: Graph, ops: list[str]) -> None:
    after = dce(align_gemm_operands(graph, ON_GPU), ON_GPU)
    verify_graph(after)
    check_types(after)
    assert [n.op for n in after.nodes] == ops
    (product,) = (n for n in after.nodes if n.op == "matmul")
    assert str(after.tensor_type(product.inputs[0]).shape[-1]) == "136"
    assert align_gemm_operands(after, ON_GPU) is after
    inputs = random_inputs(graph)
    found, right = run_graph(after, inputs), run_graph(graph, inputs)
    np.testing.assert_allclose(
        found[after.outputs[0]], right[graph.outputs[0]], rtol=1e-2, atol=1e-2
    )


@for_each(
    "graph",
    [
        _product(16, 16, 136),  # whole vectors already
        _product(16, 16, 36),  # a short K
        _product(3, 16, 130),  # few rows, which tensor cores are not for
        _product(4, 16, 130),  # eight rows: a copy would take as long as the product
        _product(16, 8, 130),
        _product(16, 16, 130, F32),
    ],
)
def test_others_stay(graph: Graph) -> None:
    assert align_gemm_operands(graph, ON_GPU) is graph
