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
    ("graph", "ops", "k"),
    [
        (_product(16, 16, 129), ["pad", "pad", "matmul"], "144"),
        (_product(16, 19, 129), ["pad", "pad", "matmul", "slice"], "144"),
        (_product(16, 19, 136), ["pad", "matmul", "slice"], "136"),
        (_product(17, 24, 131, transposed=True), ["pad", "pad", "transpose", "matmul"], "144"),
        (_product(16, 16, 129, constant=True), ["pad", "matmul"], "144"),
        (_product(8, 16, 129, constant=True), ["pad", "matmul"], "144"),
    ],
)
def test_a_long_k_becomes_whole_sectors(graph: Graph, ops: list[str], k: str) -> None:
    after = dce(align_gemm_operands(graph, ON_GPU), ON_GPU)
    verify_graph(after)
    check_types(after)
    assert [n.op for n in after.nodes] == ops
    (product,) = (n for n in after.nodes if n.op == "matmul")
    assert str(after.tensor_type(product.inputs[0]).shape[-1]) == k
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
        _product(3, 16, 129),  # few rows, which tensor cores are not for
        _product(4, 16, 129),  # eight rows: a copy would take as long as the product
        _product(16, 8, 129),
        _product(16, 16, 129, F32),
    ],
)
def test_others_stay(graph: Graph) -> None:
    assert align_gemm_operands(graph, ON_GPU) is graph


@for_each(
    ("graph", "copied"),
    [
        (_product(20, 4000, 1004, transposed=True), False),
        (_product(350, 3000, 1002, transposed=True), True),
        (_product(20, 4000, 1003, transposed=True), True),  # no words
        (_product(2, 1154, 948), False),
        (_product(500, 1002, 1000), True),
        (_product(20, 4000, 1004, constant=True), True),  # of which one is small
    ],
)
def test_few_rows_of_words_stay_as_they_lie(graph: Graph, copied: bool) -> None:
    """As long as copies take longer than the product."""
    assert (align_gemm_operands(graph, ON_GPU) is not graph) == copied


def test_who_computes_rows_writes_zeros_as_well() -> None:
    """A copy that is not one of its own costs nothing."""
    g = GraphBuilder("f")
    x, y = g.input("x", tensor(F16, 40, 1004)), g.input("y", tensor(F16, 1004, 4000))
    graph = g.graph(g.add("matmul", g.add("relu", x), y))
    assert align_gemm_operands(graph, ON_GPU) is not graph
