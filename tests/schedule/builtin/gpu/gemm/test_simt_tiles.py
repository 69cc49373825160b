from __future__ import annotations

from math import prod

from tests.for_each import for_each
from tests.schedule.builtin.gpu.scheduled import H200, T4
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import SIMT_TILES, VECTOR_ELEMENTS, SimtTile


@for_each("tile", SIMT_TILES, ids=[tile.spelling for tile in SIMT_TILES])
def test_tiles_are_whole(tile: SimtTile) -> None:
    """Threads are whole warps, which have whole vectors; an SM has room for the blocks."""
    assert tile.threads % H200.warp_size == 0
    for side, split in (
        (tile.block_m, tile.m_split(VECTOR_ELEMENTS)),
        (tile.block_n, tile.n_split(VECTOR_ELEMENTS)),
    ):
        assert prod(split) == side
    assert tile.words * tile.threads == (tile.block_m + tile.block_n) * tile.block_k
    assert tile.on(H200) == tile


def test_spellings_tell_tiles_apart() -> None:
    assert len({tile.spelling for tile in SIMT_TILES}) == len(SIMT_TILES)


def test_a_machine_with_less_has_fewer_stages() -> None:
    """Turing has no cp.async, and 64 KiB of shared memory."""
    for tile in SIMT_TILES:
        found = tile.on(T4)
        assert found is None or (found.stages < tile.stages and found.shared < tile.shared)
    assert any(tile.on(T4) for tile in SIMT_TILES)


def test_small_tiles_have_two_chains() -> None:
    small = [tile for tile in SIMT_TILES if tile.block_m * tile.block_n <= 16 * tile.threads]
    assert small
    assert all(tile.chains == 2 for tile in small)
    assert all(tile.chains == 1 for tile in SIMT_TILES if tile not in small)
