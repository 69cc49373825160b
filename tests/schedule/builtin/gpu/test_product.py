from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.gpu.scheduled import H200, check, scheduled
from tests.schedule.builtin.scheduled import sources
from tilewright.arith.expr import Var
from tilewright.ir.loop.walk import buffers, loops
from tilewright.schedule.builtin.gpu.choose import schedule_for_gpu
from tilewright.schedule.builtin.gpu.product import TILES


@pytest.mark.parametrize("sizes", [(9, 33, 10), (17, 5, 19)])
@pytest.mark.parametrize("name", ["matmul", "dense", "pointwise_conv"])
def test_meaning(name: str, sizes: tuple[int, int, int]) -> None:
    check(KERNELS[name](*sizes), {})


def test_symbolic_sizes() -> None:
    sizes = {"M": 5, "N": 9, "K": 3}
    assert "product" in check(KERNELS["matmul"](*map(Var, "MNK")), sizes)


def test_large_products_get_large_tiles() -> None:
    (result,) = scheduled(KERNELS["matmul"](2048, 2048, 256))
    threads = [loop for loop in loops(result.func.body) if loop.kind == "thread"]
    assert len(threads) >= 6
    scopes = {b.scope for b in buffers(result.func).values()}
    assert scopes >= {"shared", "register"}
    assert "to_product" in str(result.trace)


def test_the_depth_is_cut_where_tiles_are_few() -> None:
    (result,) = scheduled(KERNELS["dense"](128, 768, 3072))
    assert "rfactor" in str(result.trace)
    (result,) = scheduled(KERNELS["dense"](2048, 2048, 3072))
    assert "rfactor" not in str(result.trace)
    assert check(KERNELS["matmul"](5, 9, 256), {}) == ["product"]


def test_the_longest_axis_is_cut() -> None:
    ((func, constants),) = sources(KERNELS["conv"](20, 64, 16))[:1]
    result = schedule_for_gpu(func, constants, H200)
    assert 'rfactor("conv' in str(result.trace)


def test_tiles_are_whole() -> None:
    for tile in TILES:
        assert tile.rows % (tile.y * 4) == 0
        assert tile.columns % (tile.x * 4) == 0
        assert tile.rows * tile.depth % tile.threads == 0
        assert tile.columns * tile.depth % tile.threads == 0
        assert tile.threads <= 256
