from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense, on_threads, the_kernel
from tests.schedule.builtin.gpu.scheduled import H200, check, scheduled
from tests.schedule.builtin.scheduled import sources
from tilewright.core.dtypes import F32
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.analysis.blocks import block_graph
from tilewright.schedule.builtin.gpu.gemm.select_simt_tile import SHORT_SUM, simt_tiles_of
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import CHAINS, SIMT_TILES, SimtTile
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu


def _tile(m: int, n: int, k: int, transposed: Collection[str] = ()) -> SimtTile:
    """The tile that a product gets, some of whose operands are transposed before."""
    ((func, _),) = sources(dense(m, n, k, F32))
    graph = block_graph(func)
    found = simt_tiles_of(graph.blocks[0], graph.buffers, H200, transposed)
    assert found is not None
    return found.default


@pytest.mark.slow
def test_the_depth_is_cut_where_tiles_are_few() -> None:
    (result,) = scheduled(KERNELS["dense"](128, 768, 3072))
    assert "rfactor" in str(result.trace)
    (result,) = scheduled(KERNELS["dense"](2048, 2048, 3072))
    assert "rfactor" not in str(result.trace)
    assert check(KERNELS["matmul"](5, 9, 128), {}) == ["gemm"]


def test_the_longest_axis_is_cut() -> None:
    ((func, constants),) = sources(KERNELS["conv"](20, 64, 16))[:1]
    result = schedule_for_gpu(func, constants, H200)
    assert 'rfactor("conv' in str(result.trace)


@for_each(
    ("sizes", "transposed", "sides", "parts"),
    [
        ((4096, 4096, 4096), ("x0",), (256, 128), 1),
        ((512, 3072, 768), (), (48, 128), 2),
    ],
)
def test_what_was_measured_best_is_taken(
    sizes: tuple[int, int, int], transposed: Collection[str], sides: tuple[int, int], parts: int
) -> None:
    tile = _tile(*sizes, transposed)
    assert (tile.block_m, tile.block_n, tile.split_k) == (*sides, parts)


@for_each("sizes", [(4, 7800, 4720), (7, 4000, 3000)])
def test_sums_of_few_rows_are_short(sizes: tuple[int, int, int]) -> None:
    tile = _tile(*sizes)
    assert sizes[2] // (tile.split_k * tile.chains) <= SHORT_SUM


def test_small_tiles_add_up_even_and_odd_terms_by_themselves() -> None:
    _, found = the_kernel(dense(20, 36, 40, F32, "nn"))
    partial = [b for b in buffers(found).values() if b.scope == "register"]
    assert {str(b.shape[0]) for b in partial} == {"1", str(CHAINS)}
    for tile in SIMT_TILES:
        assert tile.chains * tile.block_m * tile.block_n <= 128 * tile.threads


def test_a_product_has_more_than_one_step() -> None:
    for depth in (12, 16, 17, 40):
        assert depth > _tile(64, 64, depth).block_k
    func, found = the_kernel(dense(20, 36, 12, F32, "nn"))
    on_threads(func, found, {})
