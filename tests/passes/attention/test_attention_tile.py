from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_GPU
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.attention.tiled_loops import GROUPED_ROWS
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.reduction.softmax import SoftmaxAttrs
from tilewright.ops.tensor.manipulation import TransposeAttrs
from tilewright.passes.attention.attention_tile import (
    FEWER_KEYS,
    FEWEST_KEYS,
    KEYS,
    MORE_KEYS,
    ROWS,
    WARP_ROWS,
    attention_tile,
)
from tilewright.passes.attention.fuse_attention import fuse_attention
from tilewright.target.calibration.sm_90a import ATTENTION
from tilewright.target.registry import CUDA, resolve_gpu

WARP_SPECIALIZED = (GROUPED_ROWS, MORE_KEYS)

CUDA_90 = resolve_gpu("cuda -arch=sm_90a")


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


@for_each("dtype", [BF16, F16])
@for_each(
    ("queries", "heads", "tile"),
    [
        (1024, 64, WARP_SPECIALIZED),
        (Var("I"), 2, (ROWS[0], KEYS)),
        (50, 12, (ROWS[0], KEYS)),
        (20, 4, (ROWS[-1], KEYS)),
        (9, 1, (WARP_ROWS, KEYS)),
        (1, 2, (WARP_ROWS, KEYS)),
    ],
)
def test_tiles(dtype: DType, queries: object, heads: int, tile: tuple[int, ...]) -> None:
    (found,) = _attention(_model(queries, 64, dtype, heads))
    assert isinstance(found.attrs, FusedAttentionAttrs)
    assert found.attrs.tile == tile
    assert found.attrs.scale == 0.125


@for_each(
    ("queries", "size", "heads", "keys", "tile"),
    [
        (1024, 128, 64, 1024, WARP_SPECIALIZED),
        (1000, 128, 64, 1003, WARP_SPECIALIZED),
        (1024, 72, 64, 1003, WARP_SPECIALIZED),
        (300, 128, 23, 128, WARP_SPECIALIZED),
        (256, 64, 64, 128, WARP_SPECIALIZED),
        (1024, 160, 64, 1000, (GROUPED_ROWS, KEYS)),
        (1024, 256, 64, 1024, (GROUPED_ROWS, KEYS)),
        (1024, 32, 64, 1024, WARP_SPECIALIZED),
        (60, 128, 512, 256, (ROWS[0], KEYS)),
        (32, 128, 512, 256, (ROWS[-1], KEYS)),
    ],
)
def test_many_rows_are_worth_warp_specialization(
    queries: int, size: int, heads: int, keys: int, tile: tuple[int, ...]
) -> None:
    (found,) = _attention(_model(queries, size, BF16, heads, keys))
    assert isinstance(found.attrs, FusedAttentionAttrs)
    assert found.attrs.tile == tile


@for_each(
    ("queries", "size", "heads", "keys", "tile"),
    [
        (20, 160, 64, 256, (ROWS[-1], FEWER_KEYS)),
        (1, 256, 2, 4096, (WARP_ROWS, FEWEST_KEYS, 64)),
        (1, 136, 2, 4096, (WARP_ROWS, FEWEST_KEYS, 64)),  # 24 vectors a row, and one warp
        (1, 128, 2, 4096, (WARP_ROWS, KEYS, 32)),
        (Var("I"), 136, 64, 1024, (ROWS[0], FEWER_KEYS)),
    ],
)
def test_wide_heads_leave_registers_for_fewer_keys(
    queries: object, size: int, heads: int, keys: int, tile: tuple[int, ...]
) -> None:
    (found,) = _attention(_model(queries, size, BF16, heads, keys))
    assert isinstance(found.attrs, FusedAttentionAttrs)
    assert found.attrs.tile == tile


def test_without_instructions_for_its_type_there_is_no_tile() -> None:
    tiles = []
    for dtype in (F16, BF16, F32):
        shape = tensor(dtype, 64, 1024, 64)
        problem = Problem(FusedAttentionAttrs(), (shape, shape, shape), shape)
        tiles.append(bool(attention_tile(resolve_gpu("cuda -arch=sm_75"), problem)))
    assert tiles == [True, False, False]


def test_without_instructions_of_four_warps_no_thread_is_apart() -> None:
    shape = tensor(BF16, 64, 1024, 128)
    problem = Problem(FusedAttentionAttrs(), (shape, shape, shape), shape)
    assert attention_tile(resolve_gpu("cuda -arch=sm_80"), problem) == (ROWS[0], KEYS)
    assert attention_tile(CUDA_90, problem) == WARP_SPECIALIZED


def test_a_batch_that_only_a_run_gives_is_not_split() -> None:
    def tile(*batch: object) -> tuple[int, ...]:
        q, k = (tensor(BF16, *batch, length, 64) for length in (300, 4096))
        return attention_tile(CUDA_90, Problem(FusedAttentionAttrs(), (q, k, k), q))

    assert len(tile(2, 4)) == 3
    assert len(tile(Var("B"), 4)) == 2


def test_queries_that_lie_in_columns_are_not_copied_by_tma() -> None:
    plain, turned = tensor(BF16, 64, 1024, 128), tensor(BF16, 64, 128, 1024)
    problem = Problem(FusedAttentionAttrs(q_perm=(0, 2, 1)), (turned, plain, plain), plain)
    assert attention_tile(CUDA_90, problem) == (ROWS[0], KEYS)


@for_each(
    ("queries", "heads", "keys", "tile"),
    [
        (1, 2, 4096, (WARP_ROWS, KEYS, 32)),
        (4, 64, 16384, (WARP_ROWS, KEYS, 3)),
        (20, 2, 1000, (ROWS[-1], KEYS, 16)),
        (1, 2, Var("J"), (WARP_ROWS, KEYS, ATTENTION.split_unknown)),
        (1, 512, 4096, (WARP_ROWS, KEYS)),
        (100, 2, 4096, (*WARP_SPECIALIZED, 32)),
        (600, 2, 4096, (*WARP_SPECIALIZED, 11)),
        (4096, 64, 4096, WARP_SPECIALIZED),
    ],
)
def test_keys_are_dealt_out_where_blocks_are_few(
    queries: int, heads: int, keys: object, tile: tuple[int, ...]
) -> None:
    (found,) = _attention(_model(queries, 64, BF16, heads, keys))
    assert isinstance(found.attrs, FusedAttentionAttrs)
    assert found.attrs.tile == tile


@for_each(("offset", "parts"), [(const(0), 1), (const(3999), 32), (Var("P"), 32)], ids=str)
def test_keys_that_no_row_sees_are_not_dealt_out(offset: Expr, parts: int) -> None:
    shape = tensor(BF16, 2, 8, 64)
    keys = tensor(BF16, 2, 4096, 64)
    problem = Problem(
        FusedAttentionAttrs(window_right=0, offset=offset), (shape, keys, keys), shape
    )
    assert (*attention_tile(resolve_gpu(CUDA), problem), 1)[2] == parts


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
