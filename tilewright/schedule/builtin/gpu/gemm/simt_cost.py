"""How long a GEMM on CUDA cores takes with a tile: FMAs, and what copies of its operands take."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.core.dtypes import F32
from tilewright.schedule.builtin.gpu.gemm.operand_copy import OperandCopy
from tilewright.schedule.builtin.gpu.gemm.simt_tiles import VECTOR_ELEMENTS, SimtTile
from tilewright.target.calibration.sm_90a import SIMT
from tilewright.target.gpu import GpuTarget

# Times of what is around the tiles, measured on an H200.
TIMES = SIMT


@dataclass(frozen=True)
class Windows:
    """The sides of a window, and the channels at each of its places."""

    sides: tuple[int, ...]
    channels: int

    def rounded(self, step: int) -> int:
        """The channels in whole steps."""
        return -(-self.channels // step) * step

    def parts_of_channels(self, parts: int) -> int:
        """In how many parts of K channels are: in one where a side of the window is cut."""
        cut = self.channels % (parts * VECTOR_ELEMENTS) == 0
        return parts if cut or all(side % parts for side in self.sides) else 1


@dataclass(frozen=True)
class SimtShape:
    """The sizes of a GEMM and how its operands are copied, those of windows word by word."""

    batch: int
    m: int
    n: int
    k: int
    left: OperandCopy
    right: OperandCopy
    windows: Windows | None = None

    def tiles_per_sm(self, tile: SimtTile, target: GpuTarget) -> int:
        """How many tiles an SM has."""
        tiles = -(-self.m // tile.block_m) * -(-self.n // tile.block_n)
        return -(-tile.split_k * self.batch * tiles // target.sm_count)

    def seconds(self, tile: SimtTile, target: GpuTarget) -> float:
        """How long it takes with a tile."""
        per_sm = self.tiles_per_sm(tile, target)
        warps = tile.threads // target.warp_size
        # Each scheduler has whole warps, and waits for the one that has most.
        tiles = -(-per_sm * warps // TIMES.schedulers) * TIMES.schedulers / warps
        resident = max(1, tile.blocks_per_sm - 1)  # as most GEMMs have a K-major A
        few = min(per_sm, resident) * warps <= TIMES.few_warps
        waves = -(-per_sm // resident)
        k, fmas = min(self._ways(tile), key=lambda way: way[0] * way[1])
        k_tiles = -(-k // (tile.split_k * tile.block_k))
        steps = tiles * k_tiles * tile.block_k * target.sm_count
        rate = target.f32_rate / 2 * (TIMES.few_warps_factor if few else 1.0)
        busy = max(steps * fmas / rate, steps * self._seconds_of_step(tile, target))
        if self.windows is not None:
            k_tile = TIMES.im2col_k_tile + tile.block_k * TIMES.im2col_step
            busy = max(busy, waves * k_tiles * k_tile)
        busy += waves * TIMES.wave
        if tile.split_k == 1:
            return busy
        partial = tile.split_k * self.batch * self.m * self.n
        return busy + TIMES.launch + partial * 8 / TIMES.split_k_rate

    def _seconds_of_step(self, tile: SimtTile, target: GpuTarget) -> float:
        """What it takes to read a step of K of a tile, while all SMs do so."""
        sides = ((self.left, self.m, tile.block_m), (self.right, self.n, tile.block_n))
        seconds = 0.0
        for way, extent, size in sides:
            rate = TIMES.vector_rate
            if way.k_major and self.batch * extent * self.k * F32.bytes > target.l2:
                by_vectors = TIMES.k_major_rate * tile.block_k / TIMES.k_major_step
                rate = by_vectors if way.vectors else TIMES.transposed_rate
            seconds += size * F32.bytes / rate
        return seconds

    def step_of_channels(self, tile: SimtTile) -> int:
        """What channels are rounded up to: whole k-tiles of each part, or 1 where it does not pay.

        All words of a k-tile are then of one place in a window: it is computed, and compared with
        the borders of the image, once for each column of the tile.
        """
        ways = [k * fmas for k, fmas in self._ways(tile)]
        if self.windows is None or ways[0] <= ways[-1]:
            return 1
        return tile.block_k * self.windows.parts_of_channels(tile.split_k)

    def _ways(self, tile: SimtTile) -> list[tuple[int, float]]:
        """K, and the FMAs that each step of it takes; of windows also with channels rounded up."""
        found = [(self.k, self._fmas(tile, placed=False))]
        if self.windows is not None:
            step = tile.block_k * self.windows.parts_of_channels(tile.split_k)
            rounded = self.k // self.windows.channels * self.windows.rounded(step)
            found.append((rounded, self._fmas(tile, placed=True)))
        return found

    def _fmas(self, tile: SimtTile, placed: bool) -> float:
        products = tile.block_m * tile.block_n / tile.rate
        left = tile.block_m * self._word(self.left, tile, placed, tile.block_m)
        right = tile.block_n * self._word(self.right, tile, placed, tile.block_n)
        return products + left + right

    def _word(self, way: OperandCopy, tile: SimtTile, placed: bool, size: int) -> float:
        """The FMAs that a word of an operand takes besides its products."""
        if way.vectors:
            return tile.k_major if way.k_major else 0.0
        if way.window:
            # Threads that have several columns compute the place of each step once for them.
            return TIMES.placed_word if placed else TIMES.window_word / max(1, size // tile.threads)
        if way.k_major:
            return tile.transposed
        whole = size % tile.threads == 0 or tile.threads % size == 0
        return TIMES.word if whole else TIMES.ragged_word
