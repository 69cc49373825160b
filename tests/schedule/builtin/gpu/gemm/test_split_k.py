from __future__ import annotations

from dataclasses import replace

import pytest

from tests.differential.kernel_graphs import _Maker
from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense, on_threads
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.scheduled import assert_replays, sources
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import blocks
from tilewright.schedule.analysis.blocks import block_graph, reductions
from tilewright.schedule.builtin.gpu.gemm import select_simt_tile, simt_cost
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import SIMT_TILES
from tilewright.schedule.builtin.gpu.gemm.split_k import (
    longest_axis,
    split_axis,
    split_k_factors,
)
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu


def _sum(m: int, n: int, k: int) -> Block:
    ((func, _),) = sources(dense(m, n, k))
    return next(b for b in block_graph(func).blocks if reductions(b))


def _factor(m: int, n: int, k: int, min_k: int = 64, sms: int = 132) -> int:
    factors = split_k_factors(_sum(m, n, k), (64, 64, 64), min_k, replace(H200, sm_count=sms))
    return max(factors)


@for_each(
    ("m", "k", "factor"),
    [
        (64, 4096, 64),  # parts of 64
        (64, 1024, 16),
        (64 * 66, 4096, 2),  # 66 tiles twice are 132
        (64 * 67, 4096, 1),
        (64, 8 * 15 * 64, 64),  # parts of two k-tiles, the last four of zeros
        (64, 65 * 64, 8),  # of 16 parts of five k-tiles, three would be zeros
    ],
)
def test_every_sm_has_a_tile(m: int, k: int, factor: int) -> None:
    assert _factor(m, 64, k) == factor


@for_each(
    ("k", "factor", "unit"),
    [(4096, 8, 1), (1000, 5, 1), (1000, 8, 512), (1001, 2, 128), (6637, 16, 1024)],
)
def test_parts_are_whole_k_tiles(k: int, factor: int, unit: int) -> None:
    assert split_axis(_sum(64, 64, k), factor, 64)[1] == unit


@for_each("sizes", [(16, 16, 1100), (20, 24, 1026)])
def test_the_last_part_ends_with_zeros(sizes: tuple[int, int, int]) -> None:
    ((func, constants),) = sources(dense(*sizes))
    result = schedule_for_gpu(func, constants, H200)
    assert "pad_reduction(" in str(result.trace)
    assert_replays(func, result)
    on_threads(func, result.func, {})


def test_no_part_is_too_short() -> None:
    assert _factor(64, 64, 4096, min_k=1024) == 4


def test_the_longest_axis_is_split() -> None:
    ((func, _),) = sources(dense(64, 32, 128))
    (axes,) = (b.iters for b in block_graph(func).blocks if reductions(b))
    assert str(longest_axis(axes).extent) == "128"


def test_a_side_of_a_window_is_cut_where_channels_would_be_rounded_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(select_simt_tile, "SIMT_TILES", SIMT_TILES[-1:])
    monkeypatch.setattr(simt_cost, "TIMES", replace(simt_cost.TIMES, launch=0.0))
    b = _Maker("conv")
    x, w = b.input(1, 11, 6, 6), b.weight(24, 11, 5, 5)
    values = {"strides": (1, 1), "pads": (2,) * 4, "dilations": (1, 1)}
    ((func, constants), *_) = sources(b.g.graph(b.add("conv", x, w, **values)), H200)
    (block,) = (x for x in blocks(func.body) if reductions(x))
    assert split_k_factors(block, (16, 32, 8), 32, H200, 9, 8) == [1, 3, 5]
    assert split_k_factors(block, (16, 32, 8), 32, H200, 9) == [1]
    result = schedule_for_gpu(func, constants, H200)
    assert "[5, ?]" in str(result.trace)
    on_threads(func, result.func, {})
