"""How long attention takes with a tile of rows and keys, and the keys split over blocks.

A thread block goes through the keys that its rows see, step by step. Alone on an SM it waits for
itself most of the time; several share the tensor cores and the units for exponentials, and what an
SM does not hold at a time comes in a further wave. Split-KV makes more blocks of fewer steps, and
adds a launch that combines them.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.core.node import node
from tilewright.target.calibration.gpu import AttentionStep
from tilewright.target.calibration.sm_90a import ATTENTION
from tilewright.target.gpu import GpuTarget

# Bytes of an operand's element, and of one of the parts that are combined.
OPERAND_BYTES, PART_BYTES = 2, 4
MICRO = 1e6
# Pipeline stages, see `schedule/builtin/gpu/attention.py`.
STAGES, SPLIT_STAGES = 2, 3


@node
class AttentionTile:
    """Rows and keys of a step; `kind` is a field of `AttentionTimes`, what multiplies them."""

    rows: int
    keys: int
    kind: str
    threads: int
    registers: int


@dataclass(frozen=True)
class AttentionWork:
    """Batches of rows, the keys that the first and the last row see, and padded columns."""

    batches: int
    rows: int
    first_seen: int
    last_seen: int
    deep: int
    wide: int

    def us(self, tile: AttentionTile, parts: int, target: GpuTarget) -> float:
        """Microseconds on a GPU, without what all tiles have in common."""
        tiles = self.batches * -(-self.rows // tile.rows) * parts
        each = -(-tiles // target.sm_count)
        together = min(each, self._resident(tile, parts, target))
        waves, rest = divmod(each, together)
        first = min(self.last_seen, self.first_seen + tile.rows - 1)
        most = -(-self.last_seen // (tile.keys * parts))
        mean = (most + -(-first // (tile.keys * parts))) / 2
        busy = waves * self._wave_us(tile, mean, together, target)
        busy += self._wave_us(tile, mean, rest, target) if rest else 0.0
        if tile.kind == "warp_specialized" and first < self.last_seen:
            # Persistent blocks share tiles of different lengths equally.
            busy = tiles / target.sm_count * self._wave_us(tile, mean, 1, target)
        longest = self._wave_us(tile, most, together, target)
        return max(busy, longest, self._memory_us(target)) + self._combine_us(parts, target)

    def _resident(self, tile: AttentionTile, parts: int, target: GpuTarget) -> int:
        """How many blocks an SM runs at a time."""
        stages = SPLIT_STAGES if parts > 1 else STAGES
        shared = stages * tile.keys * (self.deep + self.wide) * OPERAND_BYTES
        by_registers = target.registers_per_sm // (tile.registers * tile.threads)
        return max(1, min(by_registers, target.resident_blocks(shared, tile.threads)))

    def _wave_us(
        self, tile: AttentionTile, steps: float, together: int, target: GpuTarget
    ) -> float:
        """Blocks that run at a time on an SM: all of their steps, and what is around them."""
        times: AttentionStep = getattr(ATTENTION, tile.kind)
        scores = times.rows * tile.keys
        products = MICRO * 2 * scores * (self.deep + self.wide) / target.mma_rate_per_sm
        exponentials = MICRO * scores / (ATTENTION.exponentials_per_clock * target.clock)
        alone = times.us + times.products * products + times.exponentials * exponentials
        shared = together * times.share * tile.rows / times.rows
        around = times.us_around + together * times.us_per_column * self.wide
        return steps * alone * max(1.0, shared) + around

    def _memory_us(self, target: GpuTarget) -> float:
        """What reading all operands once takes."""
        columns = self.rows * (self.deep + self.wide) + self.last_seen * (self.deep + self.wide)
        return MICRO * self.batches * columns * OPERAND_BYTES / target.memory_rate

    def _combine_us(self, parts: int, target: GpuTarget) -> float:
        """The launch that combines the parts, which are in the L2 if they fit."""
        if parts == 1:
            return 0.0
        moved = 2 * parts * self.batches * self.rows * self.wide * PART_BYTES
        fits = moved // 2 <= target.l2
        rate = ATTENTION.combine_bytes_per_us if fits else target.memory_rate / MICRO
        return ATTENTION.us_per_combine + ATTENTION.us_per_part * parts + moved / rate
