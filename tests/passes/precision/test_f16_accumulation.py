from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tilewright.core.dtypes import F16, F32
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.passes.context import PassContext
from tilewright.passes.precision.f16_accumulation import f16_accumulation
from tilewright.target.registry import CPUS, CUDA, resolve_gpu

HALF = CPUS["neoverse-v1"]


def _product(terms: int) -> Graph:
    g = GraphBuilder("product")
    x = g.input("x", tensor(F16, 3, terms))
    return g.graph(g.add("matmul", x, g.constant(np.ones((terms, 4), np.float16))))


def test_sums_that_divide_into_chunks_are_short() -> None:
    after = f16_accumulation(_product(256), PassContext(HALF, "fp16"))
    assert [n.op for n in after.nodes] == ["matmul_f16acc"]


def test_other_sums_are_formed_in_f32() -> None:
    after = f16_accumulation(_product(1031), PassContext(HALF, "fp16"))
    assert [n.op for n in after.nodes] == ["cast", "cast", "matmul", "cast"]
    assert [n.type.dtype for n in after.nodes if n.op == "matmul"] == [F32]


@for_each(
    "context",
    [
        PassContext(HALF, "f32"),
        PassContext(CPUS["x86-64-v4"], "fp16"),
        PassContext(resolve_gpu(CUDA), "fp16"),
    ],
)
def test_only_where_the_user_and_the_vectors_allow_it(context: PassContext) -> None:
    graph = _product(256)
    assert f16_accumulation(graph, context) is graph
