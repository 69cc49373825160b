from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.passes.contexts import ON_GPU
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.ir.graph.nodes import Graph, Node
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
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
    WARP_SPECIALIZED_TILE,
    attention_tile,
)
from tilewright.passes.attention.fuse_attention import fuse_attention
from tilewright.target.calibration.sm_90a import ATTENTION
from tilewright.target.registry import CUDA, resolve_gpu


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
    ("queries", "heads", "rows"),
    [
        (1024, 64, ROWS[0]),
        (Var("I"), 2, ROWS[0]),
        (128, 12, ROWS[-1]),
        (9, 1, ROWS[-1]),
        (1, 2, ROWS[-1]),
    ],
)
def test_tiles(dtype: DType, queries: object, heads: int, rows: int) -> None:
    (found,) = _attention(_model(queries, 64, dtype, heads))
    assert isinstance(found.attrs, FusedAttentionAttrs)
    assert found.attrs.tile == (rows, KEYS)
    assert found.attrs.scale == 0.125


def test_many_keys_are_taken_in_larger_steps() -> None:
    for size, keys, step in ((64, 4096, MORE_KEYS), (128, 4000, KEYS), (64, 512, KEYS)):
        (found,) = _attention(_model(4096, size, keys=keys))
        assert isinstance(found.attrs, FusedAttentionAttrs)
        assert found.attrs.tile == (ROWS[0], step)


@for_each(
    ("queries", "size", "heads", "keys", "tile"),
    [
        (1024, 128, 64, 1024, WARP_SPECIALIZED_TILE),
        (300, 128, 23, 128, WARP_SPECIALIZED_TILE),
        (1024, 128, 64, 1000, (ROWS[0], KEYS)),
        (1024, 128, 8, 1024, (ROWS[0], KEYS)),
        (256, 64, 64, 128, WARP_SPECIALIZED_TILE),
        (256, 64, 64, 256, (ROWS[0], KEYS)),
        (32, 128, 512, 256, (ROWS[-1], KEYS)),
    ],
)
def test_whole_tiles_are_copied_by_threads_apart(
    queries: int, size: int, heads: int, keys: int, tile: tuple[int, ...]
) -> None:
    (found,) = _attention(_model(queries, size, BF16, heads, keys))
    assert isinstance(found.attrs, FusedAttentionAttrs)
    assert found.attrs.tile == tile


@for_each(
    ("queries", "size", "heads", "keys", "tile"),
    [
        (1024, 160, 64, 1000, (ROWS[0], KEYS)),
        (1024, 192, 64, 1024, (ROWS[0], KEYS)),
        (1024, 256, 64, 1024, (ROWS[0], FEWEST_KEYS)),  # wgmma has no instruction for so few
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
    assert attention_tile(resolve_gpu(CUDA), problem) == WARP_SPECIALIZED_TILE


@for_each(
    ("queries", "heads", "keys", "tile"),
    [
        (1, 2, 4096, (WARP_ROWS, KEYS, 32)),
        (4, 64, 16384, (WARP_ROWS, KEYS, 4)),
        (20, 2, 1000, (ROWS[-1], KEYS, 8)),
        (1, 2, Var("J"), (WARP_ROWS, KEYS, ATTENTION.split_unknown)),
        (1, 512, 4096, (ROWS[-1], KEYS)),
        (100, 2, 4096, (ROWS[-1], KEYS)),
    ],
)
def test_keys_that_few_rows_see_are_dealt_out(
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
