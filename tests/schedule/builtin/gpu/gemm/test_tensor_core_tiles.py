from __future__ import annotations

from tests.schedule.builtin.gpu.scheduled import H200
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    MULTISTAGE_TILES,
    PERSISTENT_TILES,
)
from tilewright.schedule.intrin.nvidia.mma import WARP_TILES


def test_tiles_are_whole_and_fit() -> None:
    for tile in (*MULTISTAGE_TILES, *PERSISTENT_TILES):
        assert tile.warp in WARP_TILES or (tile.wgmma and tile.warp == (16, tile.block_n))
        for side in (tile.block_m, tile.block_n):
            assert side * tile.block_k % (tile.threads * 8) == 0
        assert tile.blocks_per_sm * (tile.shared + 1024) <= H200.shared_per_sm
        assert tile.threads * tile.blocks_per_sm <= H200.warps_per_sm * H200.warp_size
