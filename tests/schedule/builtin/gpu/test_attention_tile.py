from __future__ import annotations

from collections.abc import Sequence

from tests.for_each import for_each
from tests.passes.attention.test_gpu_attention import attention_model
from tests.passes.contexts import ON_GPU
from tests.schedule.builtin.scheduled import assert_replays
from tilewright.arith.expr import Expr, Var, const
from tilewright.core.dtypes import BF16, F16, I32, DType
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.text import parse_func, print_func
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs, Problem
from tilewright.ops.attention.stated_problem import problem_of
from tilewright.ops.attention.tiled_loops import GROUPED_ROWS
from tilewright.ops.registry import get_op
from tilewright.passes.attention.fuse_attention import fuse_attention
from tilewright.schedule.builtin.gpu.attention_tile import (
    FEWER_KEYS,
    FEWEST_KEYS,
    KEYS,
    MORE_KEYS,
    ROWS,
    WARP_ROWS,
    attention_tile,
)
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.target.calibration.sm_90a import ATTENTION
from tilewright.target.registry import CUDA, resolve_gpu

WARP_SPECIALIZED = (GROUPED_ROWS, MORE_KEYS)

CUDA_90 = resolve_gpu("cuda -arch=sm_90a")


def _tile(graph: Graph) -> tuple[int, ...]:
    """The tile of the attention in a graph, without parts if there is one."""
    (found,) = (n for n in fuse_attention(graph, ON_GPU).nodes if n.op == "fused_attention")
    types = {v.name: v.type for v in graph.inputs}
    assert isinstance(found.attrs, FusedAttentionAttrs)
    assert found.attrs.scale == 0.125
    problem = Problem(found.attrs, tuple(types[x] for x in found.inputs), found.type)
    return _whole(attention_tile(CUDA_90, problem))


def _whole(tile: tuple[int, ...]) -> tuple[int, ...]:
    return tile[:2] if tile[2] == 1 else tile


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
    assert _tile(attention_model(queries, 64, dtype, heads)) == tile


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
    assert _tile(attention_model(queries, size, BF16, heads, keys)) == tile


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
    assert _tile(attention_model(queries, size, BF16, heads, keys)) == tile


def test_without_instructions_of_four_warps_no_thread_is_apart() -> None:
    shape = tensor(BF16, 64, 1024, 128)
    problem = Problem(FusedAttentionAttrs(), (shape, shape, shape), shape)
    assert attention_tile(resolve_gpu("cuda -arch=sm_80"), problem) == (ROWS[0], KEYS, 1)
    assert _whole(attention_tile(CUDA_90, problem)) == WARP_SPECIALIZED


def test_a_batch_that_only_a_run_gives_is_not_split() -> None:
    def tile(*batch: object) -> tuple[int, ...]:
        q, k = (tensor(BF16, *batch, length, 64) for length in (300, 4096))
        return attention_tile(CUDA_90, Problem(FusedAttentionAttrs(), (q, k, k), q))

    assert tile(2, 4)[2] > 1
    assert tile(Var("B"), 4)[2] == 1


def test_queries_that_lie_in_columns_are_not_copied_by_tma() -> None:
    plain, turned = tensor(BF16, 64, 1024, 128), tensor(BF16, 64, 128, 1024)
    problem = Problem(FusedAttentionAttrs(q_perm=(0, 2, 1)), (turned, plain, plain), plain)
    assert attention_tile(CUDA_90, problem) == (ROWS[0], KEYS, 1)


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
    assert _tile(attention_model(queries, 64, BF16, heads, keys)) == tile


@for_each(("offset", "parts"), [(const(0), 1), (const(3999), 32), (Var("P"), 32)], ids=str)
def test_keys_that_no_row_sees_are_not_dealt_out(offset: Expr, parts: int) -> None:
    shape = tensor(BF16, 2, 8, 64)
    keys = tensor(BF16, 2, 4096, 64)
    problem = Problem(
        FusedAttentionAttrs(window_right=0, offset=offset), (shape, keys, keys), shape
    )
    assert attention_tile(resolve_gpu(CUDA), problem)[2] == parts


def test_a_search_may_choose_any_tile() -> None:
    """Loops in any blocks get the tile that is decided; the default comes of the costs."""
    shape = tensor(F16, 2, 100, 64)
    attrs = FusedAttentionAttrs(scale=0.125, window_right=0, offset=const(3))
    func = get_op("fused_attention").loops(attrs, (shape, shape, shape), (shape,))
    offered = list[tuple[int, ...]]()

    def in_parts(options: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
        return max(tile for tile in options if tile[2] > 1)

    def largest(name: str, default: object, options: Sequence[tuple[int, ...]]) -> object:
        if name == "attention.tile":
            assert default in options
            offered.extend(options)
            return in_parts(options)
        return default

    result = schedule_for_gpu(func, frozenset(), CUDA_90, largest)
    rows, keys, parts = in_parts(offered)
    assert str(result.trace).startswith(f"tile_attention({rows}, {keys}, {parts})")
    assert_replays(func, result)
    plain = schedule_for_gpu(func, frozenset(), CUDA_90)
    tile = attention_tile(CUDA_90, Problem(attrs, (shape, shape, shape), shape))
    said = ", ".join(map(str, _whole(tile)))
    assert str(plain.trace).startswith(f"tile_attention({said})")


def test_functions_say_which_problem_they_solve() -> None:
    """The attributes come back as they were, operands that are left out as none."""
    q, k = tensor(BF16, 2, 5, 64), tensor(BF16, 2, Var("J"), 64)
    attrs = FusedAttentionAttrs(
        scale=1 / 3, bottom_right=True, window_right=0, masked_value=-1e9, q_perm=(0, 1, 2)
    )
    ins = (q, k, k, None, tensor(I32, 2))
    func = get_op("fused_attention").loops(attrs, ins, (q,))
    assert problem_of(parse_func(print_func(func))) == Problem(attrs, ins, q)
