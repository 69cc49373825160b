"""Which attention becomes one operator on a GPU."""

from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_GPU
from tilewright.arith.expr import Var
from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.reduction.softmax import SoftmaxAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.passes.attention.fuse_attention import fuse_attention
from tilewright.passes.attention.gpu_attention import fits_tensor_cores, fits_threads
from tilewright.target.gpu import with_tf32
from tilewright.target.registry import CUDA, resolve_gpu


def attention_model(
    queries: object, size: int = 64, dtype: DType = BF16, heads: int = 64, keys: object = 192
) -> Graph:
    """Attention as exporters write it: products, a scale and a softmax."""
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
        attention_model(64, dtype=F32),
        attention_model(64, size=20),
        attention_model(64, size=264),
    ],
    ids=["f32", "odd sizes", "large sizes"],
)
def test_what_has_no_tile_stays(graph: Graph) -> None:
    assert not _attention(graph)


@for_each(
    ("queries", "size", "heads", "fused"),
    [
        (1024, 64, 32, True),
        (300, 40, 64, True),
        (1024, 32, 8, False),  # two products keep more SMs busy
        (40, 64, 512, False),
        (1024, 66, 32, False),
        (1024, 68, 32, False),
        (1024, 64, 12, False),
        (1024, 64, 13, True),
        (Var("I"), 64, 64, False),
    ],
)
def test_in_f32_there_are_blocks_enough(
    queries: object, size: int, heads: int, fused: bool
) -> None:
    assert bool(_attention(attention_model(queries, size, F32, heads))) == fused


def test_products_on_tensor_cores_stay_two() -> None:
    """TF32 is faster than threads are."""
    shape = tensor(F32, 64, 1024, 64)
    problem = Problem(FusedAttentionAttrs(), (shape, shape, shape), shape)
    assert fits_threads(resolve_gpu(CUDA), problem)
    assert not fits_threads(with_tf32(resolve_gpu(CUDA)), problem)


def test_two_blocks_share_an_sm() -> None:
    found = []
    for arch, size in (("sm_90a", 64), ("sm_80", 64), ("sm_80", 32), ("sm_86", 32), ("sm_75", 32)):
        shape = tensor(F32, 512, 1024, size)
        problem = Problem(FusedAttentionAttrs(), (shape, shape, shape), shape)
        found.append(fits_threads(resolve_gpu(f"cuda -arch={arch}"), problem))
    assert found == [True, False, True, False, False]
