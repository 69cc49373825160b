from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.ci_sample import one_in
from tests.differential.kernel_graphs import KERNELS, _Maker
from tests.schedule.builtin.gpu.gemm.test_tensor_core import (
    assembled,
    dense,
    on_threads,
    the_kernel,
    tiles,
)
from tests.schedule.builtin.gpu.scheduled import H200, T4, check, finalized, scheduled
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.finalize.gpu.storage_scope import ALIGNED_PARAMS
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import blocks, buffers, loops, loops_above
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.gpu.gemm import (
    select_simt_tile,
    simt,
    simt_cost,
    transpose_operands,
)
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import (
    LANES,
    SIMT_TILES,
    VECTOR_ELEMENTS,
    SimtTile,
)
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.target.registry import resolve_gpu


@pytest.mark.parametrize("sizes", [(9, 33, 10), pytest.param((17, 5, 19), marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["matmul", "dense", "pointwise_conv"])
def test_meaning(name: str, sizes: tuple[int, int, int]) -> None:
    check(KERNELS[name](*sizes), {})


def test_symbolic_sizes() -> None:
    sizes = {"M": 5, "N": 9, "K": 3}
    assert "gemm" in check(KERNELS["matmul"](*map(Var, "MNK")), sizes)


def test_large_products_get_large_tiles() -> None:
    (result,) = scheduled(KERNELS["matmul"](2048, 2048, 256))
    threads = [loop for loop in loops(result.func.body) if loop.kind == "thread"]
    assert len(threads) >= 6
    scopes = {b.scope for b in buffers(result.func).values()}
    assert scopes >= {"shared", "register"}
    assert "to_gemm" in str(result.trace)


def _windows(batch: int, channels: int, width: int, filters: int) -> Graph:
    """A convolution of three places along one axis, by constants."""
    g = GraphBuilder("f")
    x = g.input("x", tensor(F32, batch, channels, width))
    weights = np.random.default_rng(0).standard_normal((filters, channels, 3)).astype(np.float32)
    values = {"strides": (1,), "pads": (1, 1), "dilations": (1,)}
    return g.graph(g.add("conv", x, g.constant(weights), attrs=make_attrs("conv", values)))


def _scheduled_windows(*sizes: int) -> tuple[Func, ScheduledFunc]:
    ((func, constants),) = sources(_windows(*sizes), H200)
    return func, schedule_for_gpu(func, constants, H200)


def test_all_words_of_a_k_tile_are_of_one_place_of_a_window() -> None:
    func, result = _scheduled_windows(2, 30, 70, 16)
    assert 'pad_reduction("conv' in str(result.trace)
    on_threads(func, result.func, {})


def test_few_windows_are_summed_each_by_itself() -> None:
    func, result = _scheduled_windows(1, 33, 4, 8)
    assert result.rule == "gpu.rowwise"
    on_threads(func, result.func, {})
    assert _scheduled_windows(1, 129, 4, 128)[1].rule == "gpu.rowwise"
    assert _scheduled_windows(32, 129, 4, 128)[1].rule == "gpu.gemm"
    assert _scheduled_windows(1, 2048, 8, 4096)[1].rule == "gpu.gemm"


def test_parts_may_be_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    _, result = _scheduled_windows(32, 144, 4, 128)
    assert 'rfactor("conv' in str(result.trace)
    monkeypatch.setattr(select_simt_tile, "SIMT_TILES", SIMT_TILES[-1:])
    monkeypatch.setattr(select_simt_tile, "MIN_SPLIT_K", 48)
    monkeypatch.setattr(simt_cost, "TIMES", replace(simt_cost.TIMES, launch=0.0))
    func, result = _scheduled_windows(4, 40, 4, 16)
    assert "[2, ?]" in str(result.trace)
    on_threads(func, result.func, {})


def test_tiles_are_whole() -> None:
    for tile in SIMT_TILES:
        assert tile.block_m % (tile.threads_m * VECTOR_ELEMENTS) == tile.threads_m % LANES[0] == 0
        assert tile.block_n % (tile.threads_n * VECTOR_ELEMENTS) == tile.threads_n % LANES[1] == 0
        for side in (tile.block_m, tile.block_n):
            assert side * tile.block_k % (tile.threads * VECTOR_ELEMENTS) == 0
        assert tile.threads <= 256
        assert tile.on(H200) == tile  # as many fit on an SM as say so


def test_other_machines_have_the_tiles_that_fit() -> None:
    for target in (T4, resolve_gpu("cuda -arch=sm_86")):
        fitting = [t for tile in SIMT_TILES if (t := tile.on(target)) is not None]
        assert fitting
        for tile in fitting:
            taken = tile.blocks_per_sm * (tile.shared + target.reserved_shared)
            assert taken <= target.shared_per_sm
            assert tile.stages == (2 if target is T4 else 4)


@pytest.mark.parametrize(
    ("tile", "order"),
    [
        *((tile, "nn") for tile in SIMT_TILES),
        *((SIMT_TILES[2], order) for order in ("tn", "nt", "tt")),
    ],
)
def test_every_tile(tile: SimtTile, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(select_simt_tile, "SIMT_TILES", (tile,))
    func, found = the_kernel(dense(20, 36, 40, F32, order))
    on_threads(func, found, {})


def test_constants_with_room_behind_their_columns_are_copied_in_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(simt, "SIMT", replace(simt.SIMT, shared_epilogue_min_n=128))
    b = GraphBuilder("head")
    x = b.input("x", tensor(F32, 20, 24))
    graph = b.graph(b.add("matmul", x, b.constant(np.ones((24, 130), np.float32))))
    func, found = the_kernel(graph)
    (copied,) = (loops_above(found, b.name) for b in blocks(found.body) if ".right" in b.name)
    assert copied[-1].kind == "vectorize"
    assert any(b.name.endswith(".sum.shared") for b in blocks(found.body))
    on_threads(func, found, {})


@pytest.mark.parametrize(
    ("sizes", "order", "turned", "width"),
    [
        # Transposed, with room behind rows of 47.
        ((47, 40, 141), "nt", True, 16),
        ((47, 40, 141), "nt", False, 4),
        ((12, 40, 140), "nt", False, 16),
        ((20, 36, 140), "nn", False, 16),
    ],
)
def test_parts_that_are_rounded_up_are_copied_ahead(
    sizes: tuple[int, int, int],
    order: str,
    turned: bool,
    width: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(select_simt_tile, "SIMT_TILES", SIMT_TILES[-1:])
    monkeypatch.setattr(select_simt_tile, "MIN_SPLIT_K", 16)
    monkeypatch.setattr(simt_cost, "TIMES", replace(simt_cost.TIMES, launch=0.0))
    monkeypatch.setattr(transpose_operands, "_worth", lambda b, f, all, t: all if turned else ())
    func, found = the_kernel(dense(*sizes, F32, order))
    plain = finalized(replace(found, annotations=(ALIGNED_PARAMS,)))
    assert {t.intrinsic for t in tiles(plain)} == {f"cp_async_{width}_padded"}
    on_threads(func, found, {})


@pytest.mark.ptxas
@pytest.mark.parametrize("order", ["nn", "tn"])
@pytest.mark.parametrize("tile", one_in(3, SIMT_TILES))
def test_tiles_assemble_without_spills(
    tile: SimtTile, order: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(select_simt_tile, "SIMT_TILES", (tile,))
    _, found = the_kernel(dense(1024, 1024, 256, F32, order))
    assembled(found, H200, tmp_path)


@pytest.mark.ptxas
def test_a_convolution_assembles_without_spills(tmp_path: Path) -> None:
    for result in scheduled(KERNELS["conv"](56, 64, 256)):
        assembled(result.func, H200, tmp_path)


@pytest.mark.parametrize(("width", "kind"), [(6, "vectorize"), (5, "unroll")])
def test_results_of_several_axes_are_written_in_pieces(width: int, kind: str) -> None:
    b = _Maker("conv")
    x, w = b.input(2, 12, 2, width), b.weight(8, 12, 1, 1)
    plain = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
    (result, *_) = scheduled(b.g.graph(b.add("conv", x, w, **plain)))
    block = block_graph(result.func).blocks[-1]
    assert loops_above(result.func, block.name)[-1].kind == kind
