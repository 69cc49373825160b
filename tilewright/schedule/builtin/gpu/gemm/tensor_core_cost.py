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

    `k_tile_factor` is how much longer a k-tile takes than on the GPU that was measured. `across`:
    whether rows of A and of B begin within sectors of the L2.
    """

    batch: int
    m: int
    n: int
    k: int
    epilogue_calls: int = 0
    im2col: bool = False
    k_tile_factor: float = 1.0
    across: tuple[bool, bool] = (False, False)

    def swapped(self) -> GemmShape:
        """The sizes of the transposed GEMM."""
        a, b = self.across
        return replace(self, m=self.n, n=self.m, across=(b, a))

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
        before = waves * tile.blocks_per_sm + last - 1
        full, rest = self._us_per_k_tile(tile, sms)
        busy = (before * full + rest) * k_tiles + TIMES.fill_k_tiles * full
        busy += waves * TIMES.us_per_wave + tiles * tile.block_m * tile.block_n * TIMES.us_per_store
        if tile.split_k == 1:
            elements = tile.block_m * tile.block_n / tile.threads
            busy += (waves + 1) * elements * self.epilogue_calls * TIMES.us_per_epilogue_call
        partial_bytes = tile.split_k * self.batch * self.m * self.n * 8
        added = TIMES.us_per_launch + partial_bytes / TIMES.split_k_bytes_per_us
        return busy + (added if tile.split_k > 1 else 0.0)

    def _us_per_k_tile(self, tile: TensorCoreTile, sms: int) -> tuple[float, float]:
        """Microseconds of a k-tile while all SMs have a tile, and of those that come last.

        Up to half of the SMs are in pairs with idle ones, whose share of the L2 they get.
        """
        us = tile.us_per_k_tile_im2col if self.im2col else tile.us_per_k_tile
        us *= 1.0 if self._is_full(tile) else TIMES.edge_factor
        blocks = self._tiles(tile) * tile.split_k
        blocks = sms if tile.scheduler is TileScheduler.STREAM_K else blocks
        busy = (blocks, blocks % sms or sms)
        shares = (TIMES.l2_half_share if 2 * n <= sms else 1.0 for n in busy)
        full, last = (self.k_tile_factor * max(us, x * self._l2_us(tile)) for x in shares)
        return full, last

    def _is_full(self, tile: TensorCoreTile) -> bool:
        """Whether threads need not compare what they copy with bounds."""
        return tile.wgmma or self.m % tile.block_m == self.n % tile.block_n == 0

    def _l2_us(self, tile: TensorCoreTile) -> float:
        """Microseconds that the L2 takes for a k-tile of every SM, where sectors are read in part.

        SMs that read whole sectors at the same time are served together: part of a tile's time.
        """
        if not any(self.across):
            return 0.0
        width = tile.block_k * tile.operand_bytes
        rates = [TIMES.l2_across_bytes_per_us if x else TIMES.l2_bytes_per_us for x in self.across]
        return width * (tile.block_m / rates[0] + tile.block_n / rates[1])

    def _persistent_us(self, tile: TensorCoreTile, sms: int) -> float:
        """The same of a persistent kernel: with ping-pong, epilogues overlap other mainloops."""
        tiles, k_tiles = self.tiles_and_k_tiles(tile, sms)
        k_tile, last = self._us_per_k_tile(tile, sms)
        if k_tile == inf:
            return inf
        pingpong = tile.consumer_groups > 1
        call = TIMES.us_per_pingpong_call if pingpong else TIMES.us_per_epilogue_call
        epilogue = tile.block_m * tile.block_n / tile.threads * self.epilogue_calls * call
        store = (
            tile.block_m
            * tile.block_n
            * TIMES.us_per_store
            * (TIMES.pingpong_stores if pingpong else 1.0)
        )
        start = TIMES.us_persistent_start + TIMES.fill_k_tiles * k_tile
        stream_k = tile.scheduler is TileScheduler.STREAM_K
        if stream_k and tiles > TIMES.stream_k_max_tiles:
            return inf
        if stream_k:
            own = -(-self._tiles(tile) * k_tiles // sms)
            fixup = TIMES.us_per_fixup_element + TIMES.us_per_fixup_part * k_tiles / own
            partials = tile.block_m * tile.block_n * fixup
            return start + own * k_tile + partials + tiles * (epilogue + store)
        last *= TIMES.pingpong_alone if pingpong and tiles == 1 else 1.0
        mainloop = k_tiles * k_tile
        each = max(mainloop, (mainloop + epilogue) / tile.consumer_groups) + store
        return start + (tiles - 1) * each + k_tiles * last + epilogue + store
