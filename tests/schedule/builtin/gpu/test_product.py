from __future__ import annotations

import pytest

from tests.differential.kernel_graphs import KERNELS
from tests.schedule.builtin.gpu.scheduled import check, scheduled
from tilewright.arith.expr import Var
from tilewright.ir.loop.walk import buffers, loops
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


def test_tiles_are_whole() -> None:
    for tile in TILES:
        assert tile.rows % (tile.y * 4) == 0
        assert tile.columns % (tile.x * 4) == 0
        assert tile.rows * tile.depth % tile.threads == 0
        assert tile.columns * tile.depth % tile.threads == 0
        assert tile.threads <= 256
