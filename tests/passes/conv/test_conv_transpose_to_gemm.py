from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.differential.native import check_native, random_inputs
from tests.for_each import for_each
from tests.passes.contexts import ON_CPU, ON_GPU
from tilewright.arith.expr import Expr, Var
from tilewright.core.dtypes import F16, F32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.conv.conv import ConvTransposeAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.interpret import run_graph
from tilewright.passes.conv.conv_transpose_to_gemm import conv_transpose_to_gemm

# Shapes of elements and weights, strides, pads, groups, output padding.
CASES = {
    "odd": ((1, 40, 9, 17), (40, 3, 3, 3), (2, 2), (0, 0, 0, 0), 1, (0, 0)),
    "cut": ((2, 33, 7, 7), (33, 2, 4, 4), (2, 2), (1, 1, 1, 1), 1, (0, 0)),
    "longer": ((1, 24, 5, 9), (24, 4, 3, 3), (2, 2), (1, 1, 1, 1), 1, (1, 1)),
    "groups": ((1, 48, 6, 11), (48, 2, 3, 3), (2, 2), (1, 0, 0, 1), 2, (0, 1)),
    "third": ((1, 32, 4, 13), (32, 2, 5, 4), (3, 3), (2, 1, 0, 1), 1, (2, 1)),
    "line": ((2, 64, 21), (64, 3, 3), (2,), (1, 1), 1, (1,)),
}


def _graph(case: tuple, dtype: DType = F32, batch: Expr | None = None) -> Graph:
    (images, *x), w, strides, pads, groups, output_padding = case
    unit = (1,) * len(strides)
    attrs = ConvTransposeAttrs(strides, pads, unit, "channels_first", groups, output_padding)
    weights = np.random.default_rng(5).standard_normal(w) / w[0] ** 0.5
    g = GraphBuilder("f")
    source = g.input("x", tensor(dtype, batch or images, *x))
    taps = g.constant(weights.astype(dtype.name.replace("f", "float")), "w")
    return g.graph(g.add("conv_transpose", source, taps, attrs=attrs))


def _ops(graph: Graph) -> list[str]:
    return [n.op for n in conv_transpose_to_gemm(graph, ON_CPU).nodes]


@for_each("case", CASES.values(), ids=CASES)
def test_results_are_the_same(case: tuple) -> None:
    graph = _graph(case)
    after = conv_transpose_to_gemm(graph, ON_CPU)
    assert "matmul" in _ops(graph)
    assert _ops(graph)[-1] == "col2im"
    inputs = random_inputs(graph)
    (expected,), (found,) = (run_graph(g, inputs).values() for g in (graph, after))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    check_native(graph, inputs, scale=10.0)


def test_a_symbolic_batch_is_taken_to_be_one_image() -> None:
    assert "col2im" in _ops(_graph(CASES["odd"], batch=Var("N")))


def test_what_stays_as_it_is() -> None:
    few, many = (1, 8, 64, 64), (8, 64, 5, 5)
    dear = _graph((few, many, (2, 2), (0, 0, 0, 0), 1, (0, 0)))
    for graph in (dear, _graph(CASES["odd"], F16)):
        assert conv_transpose_to_gemm(graph, ON_CPU) is graph
    graph = _graph(CASES["odd"])
    for context in (ON_GPU, replace(ON_CPU, precision="bf16")):
        assert conv_transpose_to_gemm(graph, context) is graph
