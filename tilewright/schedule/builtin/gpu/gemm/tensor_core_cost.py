"""How long a GEMM on tensor cores takes with a tile: measured k-tiles, waves and epilogues."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from tilewright.schedule.builtin.gpu.gemm.tensor_core_tiles import (
    Mainloop,
    TensorCoreTile,
    TileScheduler,
)
from tilewright.target.calibration.sm_90a import TENSOR_CORE

# Times of the tiles and of what is around them, measured on an H200.
TIMES = TENSOR_CORE


@dataclass(frozen=True)
class GemmShape:
    """The sizes of a GEMM, the calls of its epilogue, and whether A is an im2col matrix.

    `k_tile_factor` is how much longer a k-tile takes than on the GPU that was measured.
    """

    batch: int
    m: int
    n: int
    k: int
    epilogue_calls: int = 0
    im2col: bool = False
    k_tile_factor: float = 1.0

    def swapped(self) -> GemmShape:
        """The sizes of the transposed GEMM."""
        return replace(self, m=self.n, n=self.m)

    def tiles_and_k_tiles(self, tile: TensorCoreTile, sms: int) -> tuple[int, int]:
        """How many tiles an SM has, and the k-tiles of each."""
        tiles = -(-self._tiles(tile) * tile.split_k // sms)
        return tiles, -(-self.k // (tile.split_k * tile.block_k))

    def _tiles(self, tile: TensorCoreTile) -> int:
        return self.batch * -(-self.m // tile.block_m) * -(-self.n // tile.block_n)

    def us(self, tile: TensorCoreTile, sms: int) -> float:
        """Microseconds with a tile, without what all tiles have in common.

        In the last wave a block that has an SM to itself is faster, but not by as much.
        """
        if tile.mainloop is Mainloop.WARP_SPECIALIZED:
            return self._persistent_us(tile, sms)
        tiles, k_tiles = self.tiles_and_k_tiles(tile, sms)
        waves = (tiles - 1) // tile.blocks_per_sm
        last = max(tiles - waves * tile.blocks_per_sm, (tile.blocks_per_sm + 1) / 2)
        busy = (waves * tile.blocks_per_sm + last) * k_tiles * self._us_per_k_tile(tile)
        busy += waves * TIMES.us_per_wave + tiles * tile.block_m * tile.block_n * TIMES.us_per_store
        if tile.split_k == 1:
            elements = tile.block_m * tile.block_n / tile.threads
            busy += (waves + 1) * elements * self.epilogue_calls * TIMES.us_per_epilogue_call
        partial_bytes = tile.split_k * self.batch * self.m * self.n * 8
        added = TIMES.us_per_launch + partial_bytes / TIMES.split_k_bytes_per_us
        return busy + (added if tile.split_k > 1 else 0.0)

    def _us_per_k_tile(self, tile: TensorCoreTile) -> float:
        if self.im2col:
            us, full = tile.us_per_k_tile_im2col, self.n % tile.block_n == 0
            edge = TIMES.edge_factor
        else:
            us, full = tile.us_per_k_tile, self.m % tile.block_m == self.n % tile.block_n == 0
            edge = TIMES.edge_factor if tile.blocks_per_sm == 1 else TIMES.edge_factor_multi
        return self.k_tile_factor * us * (1.0 if full else edge)

    def _persistent_us(self, tile: TensorCoreTile, sms: int) -> float:
        """The same of a persistent kernel: with ping-pong, epilogues overlap other mainloops."""
        tiles, k_tiles = self.tiles_and_k_tiles(tile, sms)
        k_tile = self._us_per_k_tile(tile)
        pingpong = tile.consumer_groups > 1
        call = TIMES.us_per_pingpong_call if pingpong else TIMES.us_per_epilogue_call
        epilogue = tile.block_m * tile.block_n / tile.threads * self.epilogue_calls * call
        store = (
            tile.block_m
            * tile.block_n
            * TIMES.us_per_store
            * (TIMES.pingpong_stores if pingpong else 1.0)
        )
        stream_k = tile.scheduler is TileScheduler.STREAM_K
        if stream_k and tiles > TIMES.stream_k_max_tiles:
            return inf
        if stream_k:
            own = -(-self._tiles(tile) * k_tiles // sms)
            fixup = TIMES.us_per_fixup_element + TIMES.us_per_fixup_part * k_tiles / own
            partials = tile.block_m * tile.block_n * fixup
            return TIMES.us_persistent_start + own * k_tile + partials + tiles * (epilogue + store)
        mainloop = k_tiles * k_tile
        each = max(mainloop, (mainloop + epilogue) / tile.consumer_groups) + store
        return TIMES.us_persistent_start + (tiles - 1) * each + mainloop + epilogue + store
