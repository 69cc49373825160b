from __future__ import annotations

import pytest

from tilewright.schedule.builtin.gpu.gemm.tensor_core_cost import GemmShape
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import MULTISTAGE_TILES


def test_a_k_tile_takes_as_long_as_the_tensor_cores_of_an_sm() -> None:
    """Where they are slow, the same GEMM is worth more blocks: launches cost the same."""
    tile = MULTISTAGE_TILES[0]
    fast, slow = (GemmShape(1, 512, 512, 4096, k_tile_factor=factor) for factor in (1.0, 2.0))
    store = GemmShape(1, 512, 512, 4096, k_tile_factor=0.0).us(tile, 132)
    assert slow.us(tile, 132) - store == pytest.approx(2 * (fast.us(tile, 132) - store))
