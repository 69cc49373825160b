"""Attention becomes one operator on a GPU where tensor cores compute it."""

from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_GPU
from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.reduction.softmax import SoftmaxAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.passes.attention.fits_tensor_cores import fits_tensor_cores
from tilewright.passes.attention.fuse_attention import fuse_attention
from tilewright.target.registry import resolve_gpu


def _model(
    queries: object, size: int = 64, dtype: DType = BF16, heads: int = 64, keys: object = 192
) -> Graph:
    b = GraphBuilder("f")
    q = b.input("q", tensor(dtype, heads, queries, size))
    k, v = (b.input(n, tensor(dtype, heads, keys, size)) for n in "kv")
    turned = b.add("transpose", k, attrs=TransposeAttrs((0, 2, 1)))
    number = b.constant(np.asarray(0.125, dtype.numpy))
    scores = b.add("mul", b.add("matmul", q, turned), number)
    return b.graph(b.add("matmul", b.add("softmax", scores, attrs=SoftmaxAttrs(-1)), v))


def _attention(graph: Graph) -> list[Node]:
    return [n for n in fuse_attention(graph, ON_GPU).nodes if n.op == "fused_attention"]


def test_without_instructions_for_its_type_there_is_none() -> None:
    fits = []
    for dtype in (F16, BF16, F32):
        shape = tensor(dtype, 64, 1024, 64)
        problem = Problem(FusedAttentionAttrs(), (shape, shape, shape), shape)
        fits.append(fits_tensor_cores(resolve_gpu("cuda -arch=sm_75"), problem))
    assert fits == [True, False, False]


@for_each(
    "graph",
    [
        _model(64, dtype=F32),
        _model(64, size=20),
        _model(64, size=264),
    ],
    ids=["f32", "odd sizes", "large sizes"],
)
def test_what_has_no_tile_stays(graph: Graph) -> None:
    assert not _attention(graph)
