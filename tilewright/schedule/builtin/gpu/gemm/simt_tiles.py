"""Tiles of a GEMM on CUDA cores (SIMT): sides, threads, and measured rates."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from tilewright.core.dtypes import F32
from tilewright.target.calibration.sm_90a import SIMT
from tilewright.target.gpu import VECTOR_BYTES, GpuTarget

# Contiguous rows and columns of a thread: a vector of f32.
VECTOR_ELEMENTS = VECTOR_BYTES // F32.bytes
# The threads of a warp along M and N: they read few different words of both operands.
LANES = (4, 8)
# A smaller K is not worth a tile.
MIN_K = 8
# A smaller M or N leaves most of a tile empty.
MIN_SIDE = 4
# The partial sums of each element, where a thread has at most so many elements.
CHAINS, MAX_CHAINED = 2, 16
# Pipeline stages.
STAGES = 4
# Registers of a thread besides accumulators, what it has read and what it copies.
WORKING_REGISTERS = 40
# Rates of the tiles, measured on an H200.
TIMES = SIMT


@dataclass(frozen=True)
class SimtTile:
    """A thread block's tile of the result, its k-tile, and its threads along M and N.

    An SM runs `blocks_per_sm` of them. `rate` is the share of the peak that it reaches of operands
    in vectors along M and N; `k_major` and `transposed` are the FMAs that a word of a K-major
    operand takes besides, copied in vectors and word by word. `split_k` is into how many parts K is
    split; `stages` are those of the pipeline.
    """

    block_m: int
    block_n: int
    block_k: int
    threads_m: int
    threads_n: int
    blocks_per_sm: int
    rate: float
    k_major: float
    transposed: float
    split_k: int = 1
    stages: int = STAGES

    @property
    def chains(self) -> int:
        """The partial sums of each element: chains of additions half as long have smaller errors.

        Only where there are registers for them.
        """
        return CHAINS if self.block_m * self.block_n <= MAX_CHAINED * self.threads else 1

    @property
    def shared(self) -> int:
        """The bytes of shared memory of all stages, of f32 at most."""
        return (self.block_m + self.block_n) * self.block_k * F32.bytes * self.stages

    @property
    def words(self) -> int:
        """The words of a k-tile that a thread copies."""
        return (self.block_m + self.block_n) * self.block_k // self.threads

    def on(self, target: GpuTarget) -> SimtTile | None:
        """The tile as a machine can have it, `None` if its shared memory is too small.

        Fewer stages where copies pass through registers, fewer blocks on an SM of less memory.
        """
        most = target.max_pipeline_stages
        fewer = self if most is None else replace(self, stages=min(self.stages, most))
        if fewer.shared > target.max_shared_per_block:
            return None
        blocks = min(fewer.blocks_per_sm, target.resident_blocks(fewer.shared, fewer.threads))
        return replace(fewer, blocks_per_sm=blocks)

    def resident(self, target: GpuTarget, depth: int) -> int:
        """How many blocks the registers of an SM suffice for, of threads that read so much of K."""
        accumulators = self.block_m * self.block_n // self.threads
        read = (self.block_m // self.threads_m + self.block_n // self.threads_n) * depth
        registers = accumulators * self.chains + read + WORKING_REGISTERS
        return max(1, target.registers_per_sm // (registers * self.threads))

    @property
    def sides(self) -> tuple[int, int, int]:
        """The block's M, N and K."""
        return self.block_m, self.block_n, self.block_k

    @property
    def spelling(self) -> str:
        """`128 x 64 x 16, 16 x 8 threads`: what distinguishes it."""
        split = f", K in {self.split_k} parts" if self.split_k > 1 else ""
        sides = " x ".join(map(str, self.sides))
        return f"{sides}, {self.threads_m} x {self.threads_n} threads{split}"

    @property
    def threads(self) -> int:
        """The threads that compute it."""
        return self.threads_m * self.threads_n

    def m_split(self, vector: int) -> list[int]:
        """Factors of M: repeats of a thread, warps, lanes of a warp, rows of a vector."""
        lanes = LANES[0]
        return [self.block_m // (self.threads_m * vector), self.threads_m // lanes, lanes, vector]

    def n_split(self, vector: int) -> list[int]:
        """The same factors of N."""
        lanes = LANES[1]
        return [self.block_n // (self.threads_n * vector), self.threads_n // lanes, lanes, vector]


SIMT_TILES = tuple(SimtTile(**asdict(row)) for row in TIMES.tiles)
