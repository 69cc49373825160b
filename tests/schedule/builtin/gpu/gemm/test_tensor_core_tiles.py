from __future__ import annotations

from dataclasses import replace

from tests.schedule.builtin.gpu.scheduled import H200, T4
from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    MULTISTAGE_TILES,
    PERSISTENT_TILES,
    Mainloop,
    TensorCoreTile,
)
from tilewright.schedule.intrin.nvidia.mma import WARP_TILES
from tilewright.target.gpu import GpuTarget
from tilewright.target.registry import resolve_gpu


def test_tiles_are_whole_and_fit() -> None:
    for tile in (*MULTISTAGE_TILES, *PERSISTENT_TILES):
        assert tile.warp in WARP_TILES or (tile.wgmma and tile.warp == (16, tile.block_n))
        by_threads = tile.mainloop is not Mainloop.WARP_SPECIALIZED
        for side in (tile.block_m, tile.block_n) if by_threads else ():
            assert side * tile.block_k % (tile.threads * 8) == 0
        assert tile.blocks_per_sm * (tile.shared + 1024) <= H200.shared_per_sm
        assert tile.threads * tile.blocks_per_sm <= H200.warps_per_sm * H200.warp_size


def on(target: GpuTarget, kind: str) -> list[TensorCoreTile]:
    """The tiles that a machine has."""
    return [t for tile in MULTISTAGE_TILES if (t := tile.on(target, kind)) is not None]


def test_tiles_on_other_machines() -> None:
    assert [replace(t, mma_k=0) for t in on(H200, "bf16")] == [*MULTISTAGE_TILES]
    assert on(T4, "bf16") == []
    rtx = resolve_gpu("cuda -arch=sm_86")
    for target, k, most in ((T4, 8, 2), (rtx, 16, 8)):
        assert on(target, "f16")
        for tile in on(target, "f16"):
            assert not tile.wgmma
            assert (tile.mma_k, tile.stages <= most) == (k, True)
            blocks = tile.blocks_per_sm * (tile.shared + target.reserved_shared)
            assert blocks <= target.shared_per_sm
            names = tile.names("f16", left=True, right=True)
            assert ("_k8_" in names[1]) == (target is T4)
