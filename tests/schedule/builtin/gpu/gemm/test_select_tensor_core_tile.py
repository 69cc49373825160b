from __future__ import annotations

from dataclasses import replace

import pytest

from tests.differential.kernel_graphs import _Maker
from tests.schedule.builtin.gpu.gemm.test_tensor_core import A100, dense, of_bytes
from tests.schedule.builtin.gpu.scheduled import H200
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import Var, call
from tilewright.core.dtypes import F16, I8, U8
from tilewright.ir.loop.nodes import Block, Store
from tilewright.ir.types import TYPICAL_SIZE
from tilewright.schedule.analysis.blocks import (
    block_graph,
    reductions,
    value_of,
)
from tilewright.schedule.builtin.gpu.gemm.select_tensor_core_tile import (
    tensor_core_tile_of,
    tensor_core_tiles_of,
)
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    Mainloop,
    TensorCoreTile,
    TileScheduler,
)
from tilewright.schedule.builtin.inlining import inline_copies
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget


def chosen(
    m: int, n: int, k: int, target: GpuTarget = H200, order: str = "nn"
) -> TensorCoreTile | None:
    ((func, _),) = sources(dense(m, n, k, order=order))
    sch = Schedule(func)
    inline_copies(sch, block_graph(func), frozenset())
    structure = block_graph(sch.func)
    return tensor_core_tile_of(structure.blocks[0], structure.buffers, target)


@pytest.mark.parametrize(
    ("sizes", "sides", "parts", "mainloop"),
    [
        ((4096, 4096, 4096), (128, 256), 1, Mainloop.WARP_SPECIALIZED),
        ((1024, 1024, 1024), (128, 64), 1, Mainloop.WARP_SPECIALIZED),
        ((4096, 768, 768), (128, 192), 1, Mainloop.CP_ASYNC),
        ((512, 512, 512), (64, 64), 1, Mainloop.CP_ASYNC),
        ((128, 768, 3072), (64, 64), 4, Mainloop.CP_ASYNC),
        ((16, 64, 64), (16, 64), 1, Mainloop.CP_ASYNC),
        ((1000, 1000, 1000), (128, 128), 1, Mainloop.TMA),  # rows begin within sectors
        ((987, 488, 5496), (128, 256), 4, Mainloop.TMA),
    ],
)
def test_what_was_measured_best_is_taken(
    sizes: tuple[int, int, int], sides: tuple[int, int], parts: int, mainloop: Mainloop
) -> None:
    tile = chosen(*sizes)
    assert tile is not None
    assert (tile.block_m, tile.block_n, tile.split_k) == (*sides, parts)
    assert tile.mainloop is mainloop


@pytest.mark.parametrize(
    ("sizes", "sides", "groups", "scheduler"),
    [
        ((4096, 2304, 768), (128, 192), 1, TileScheduler.PERSISTENT),
        ((4096, 50264, 768), (256, 128), 1, TileScheduler.PERSISTENT),
        ((4096, 768, 3072), (128, 192), 1, TileScheduler.DATA_PARALLEL),
        ((25088, 512, 128), (128, 128), 2, TileScheduler.PERSISTENT),
        ((512, 4096, 14336), (128, 128), 1, TileScheduler.PERSISTENT),
        ((4096, 768, 768), (128, 192), 1, TileScheduler.DATA_PARALLEL),
        ((1152, 4096, 8192), (128, 256), 1, TileScheduler.STREAM_K),
        ((8192, 8192, 8192), (128, 192), 1, TileScheduler.PERSISTENT),
    ],
)
def test_persistent_kernels_where_they_were_measured_best(
    sizes: tuple[int, int, int], sides: tuple[int, int], groups: int, scheduler: TileScheduler
) -> None:
    tile = chosen(*sizes)
    assert tile is not None
    found = (tile.block_m, tile.block_n)
    assert (found, tile.consumer_groups, tile.scheduler) == (sides, groups, scheduler)
    while tile.fallback is not None:
        assert tile.mainloop is Mainloop.WARP_SPECIALIZED
        tile = tile.fallback
    assert tile.mainloop is not Mainloop.WARP_SPECIALIZED


@pytest.mark.parametrize(
    ("sizes", "mainloop"),
    [
        ((512, 1408, 3584), Mainloop.CP_ASYNC),
        ((504, 1408, 3584), Mainloop.TMA),
        ((512, 1368, 3584), Mainloop.TMA),
        ((512, 1408, 3592), Mainloop.TMA),
    ],
)
def test_tiles_that_reach_beyond_matrices_are_copied_by_the_engine(
    sizes: tuple[int, int, int], mainloop: Mainloop
) -> None:
    structure = block_graph(sources(dense(*sizes))[0][0])
    found = tensor_core_tiles_of(structure.blocks[0], structure.buffers, H200)
    assert found is not None
    deep = [t for t in found.tiles if t.sides == (64, 128, 64) and t.stages == 8 and t.wgmma]
    assert {t.mainloop for t in deep if t.split_k == 1} == {mainloop}


def test_stream_k_needs_a_known_number_of_k_tiles() -> None:
    known, unknown = (
        tensor_core_tile_of(structure.blocks[0], structure.buffers, H200)
        for rows in (1152, Var("N") * (1152 // TYPICAL_SIZE))
        for structure in (block_graph(sources(dense(rows, 4096, 8192))[0][0]),)
    )
    assert known is not None
    assert known.scheduler is TileScheduler.STREAM_K
    while unknown is not None:
        assert unknown.scheduler is not TileScheduler.STREAM_K
        unknown = unknown.fallback


def test_columns_that_fill_no_panel_are_for_operands_along_the_depth() -> None:
    across, along = chosen(2048, 1280, 8192), chosen(2048, 1280, 8192, order="nt")
    assert across is not None
    assert along is not None
    assert along.block_n == 160
    assert across.block_n % 64 == 0


def test_only_machines_that_have_them_group_warps() -> None:
    for target, grouped in ((H200, True), (A100, False)):
        tile = chosen(512, 512, 512, target)
        assert tile is not None
        assert tile.wgmma == grouped


@pytest.mark.parametrize("target", [H200, A100])
def test_bytes_have_the_same_tiles_twice_as_deep(target: GpuTarget) -> None:
    def of(turned: bool) -> TensorCoreTile | None:
        ((func, _),) = sources(of_bytes(512, 3072, 768, U8, I8, turned))
        sch = Schedule(func)
        inline_copies(sch, block_graph(func), frozenset())
        structure = block_graph(sch.func)
        product = next(b for b in structure.blocks if reductions(b))
        return tensor_core_tile_of(product, structure.buffers, target)

    tile, halves = of(turned=True), chosen(512, 3072, 384, target)
    assert tile is not None
    assert halves is not None
    assert tile == replace(halves.of(1), mainloop=tile.mainloop, mma_k=tile.mma_k)
    assert (tile.block_k, tile.vector_elements, tile.instruction_k) == (
        128,
        16,
        128 if tile.wgmma else 32,
    )
    assert of(turned=False) is None  # across the depth


def test_too_thin_for_tiles() -> None:
    assert chosen(512, 512, 4) is None
    assert chosen(512, 2, 512) is None


def _with_gelu(block: Block) -> Block:
    assert isinstance(block.body, Store)
    return replace(block, body=replace(block.body, value=call("gelu", value_of(block))))


def test_functions_that_follow_want_threads() -> None:
    ((func, _),) = sources(dense(512, 3072, 768))
    structure = block_graph(func)
    product, after = structure.blocks[0], structure.blocks[1:]
    slow = [_with_gelu(b) for b in after]
    plain, costly = (
        tensor_core_tile_of(product, structure.buffers, H200, x) for x in (after, slow)
    )
    assert plain is not None
    assert costly is not None
    each = [t.block_m * t.block_n / t.threads for t in (plain, costly)]
    assert each[1] < each[0]


def test_windows_have_a_tile_of_their_own() -> None:
    b = _Maker("conv")
    x, w = b.input(32, 56, 56, 64, dtype=F16), b.input(64, 64, 3, 3, dtype=F16)
    window = {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)}
    y = b.add("conv", x, w, **window, layout="channels_last")
    for func, _ in sources(b.g.graph(y)):
        structure = block_graph(func)
        for block in (b for b in structure.blocks if reductions(b)):
            tile = tensor_core_tile_of(block, structure.buffers, H200)
            assert tile is not None
            assert (tile.block_m, tile.block_n) == (128, 64)
            assert tile.mainloop is not Mainloop.WARP_SPECIALIZED
    plain = chosen(32 * 56 * 56, 64, 9 * 64)
    assert plain is not None
    assert plain.mainloop is Mainloop.WARP_SPECIALIZED
