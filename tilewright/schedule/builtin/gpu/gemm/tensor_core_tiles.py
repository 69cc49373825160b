"""The tiles that a GEMM on tensor cores can have, with the measured time of a k-tile of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from enum import Enum
from math import inf

from tilewright.ir.loop.thread_mapping import WARP_SIZE
from tilewright.schedule.intrin.nvidia import wgmma
from tilewright.schedule.intrin.nvidia.mma import MMA_K, VECTOR_ELEMENTS, mma_names
from tilewright.target.calibration.gpu import TensorCoreTileTime
from tilewright.target.calibration.sm_90a import TENSOR_CORE
from tilewright.target.gpu import GpuTarget


class Mainloop(Enum):
    """Who copies operands to shared memory: all threads, one thread by TMA, or producer warps."""

    CP_ASYNC = "cp_async"
    TMA = "tma"
    WARP_SPECIALIZED = "warp_specialized"


class TileScheduler(Enum):
    """How tiles are distributed over thread blocks.

    One tile a block, or a part of its K (split-K); blocks that loop over tiles (persistent), or
    over equal numbers of k-tiles (stream-K).
    """

    DATA_PARALLEL = "data_parallel"
    SPLIT_K = "split_k"
    PERSISTENT = "persistent"
    STREAM_K = "stream_k"


@dataclass(frozen=True)
class TensorCoreTile:
    """A thread block's tile of the result, its warps, and the depth of its pipeline.

    An SM runs `blocks_per_sm` of them. Each takes `us_per_k_tile` microseconds for a k-tile, or
    `us_per_k_tile_im2col` where A is an im2col matrix, which threads copy vector by vector.
    `wgmma`: instructions of a warpgroup (four warps). `mainloop` is for full tiles that TMA can
    load; other tiles are copied by all threads, or have a `fallback` where producer warps load
    them. `split_k`: into how many parts K is split. `swap_ab`: the tile is of the transposed GEMM.
    `mma_k` is the K of the machine's `mma.sync`, 0 for that of `schedule/intrin/nvidia/mma.py`.
    Warps repeat along M `m_repeats` times. Two `consumer_groups` of warps take tiles in ping-pong.
    """

    block_m: int
    block_n: int
    warps_m: int
    warps_n: int
    stages: int
    blocks_per_sm: int
    us_per_k_tile: float
    us_per_k_tile_im2col: float = inf
    wgmma: bool = False
    block_k: int = 64
    operand_bytes: int = 2
    mma_k: int = 0
    split_k: int = 1
    mainloop: Mainloop = Mainloop.TMA
    scheduler: TileScheduler = TileScheduler.DATA_PARALLEL
    swap_ab: bool = False
    m_repeats: int = 1
    consumer_groups: int = 1
    fallback: TensorCoreTile | None = None

    def of(self, operand_bytes: int) -> TensorCoreTile:
        """The tile for operands of so many bytes an element."""
        block_k = self.block_k * self.operand_bytes // operand_bytes
        return replace(self, block_k=block_k, operand_bytes=operand_bytes)

    def on(self, target: GpuTarget, kind: str) -> TensorCoreTile | None:
        """The tile as a machine can have it for operands of a kind; `None` if it cannot.

        Fewer stages where copies pass through registers, fewer blocks on an SM of less memory.
        """
        mma = (target.warpgroup_mma if self.wgmma else target.warp_mma)(kind)
        most = target.max_pipeline_stages
        fewer = self if most is None else replace(self, stages=min(self.stages, most))
        if mma is None or fewer.shared > target.max_shared_per_block:
            return None
        blocks = min(fewer.blocks_per_sm, target.resident_blocks(fewer.shared, fewer.threads))
        return replace(fewer, blocks_per_sm=blocks, mma_k=0 if self.wgmma else mma.k)

    @property
    def sides(self) -> tuple[int, int, int]:
        """The block's M, N and K."""
        return self.block_m, self.block_n, self.block_k

    @property
    def spelling(self) -> str:
        """`128 x 256 x 64, 8 x 1 warps, wgmma, 4 stages, persistent`: what distinguishes it."""
        split = f", K in {self.split_k} parts" if self.split_k > 1 else ""
        how = "wgmma" if self.wgmma else "mma"
        groups = f" in {self.consumer_groups} groups" if self.consumer_groups > 1 else ""
        return (
            f"{' x '.join(map(str, self.sides))}, {self.warps_m} x {self.warps_n} warps{groups}, "
            f"{how}, {self.stages} stages, {self.scheduler.value}{split}"
        )

    @property
    def threads(self) -> int:
        """The threads that compute it."""
        return WARP_SIZE * self.warps_m * self.warps_n

    @property
    def m_split(self) -> list[int]:
        """How often the warps repeat along M, if more than once, and the warps along M."""
        return [self.m_repeats, self.warps_m] if self.m_repeats > 1 else [self.warps_m]

    @property
    def warp(self) -> tuple[int, int]:
        """M and N of a warp's tile."""
        return self.block_m // (self.warps_m * self.m_repeats), self.block_n // self.warps_n

    @property
    def shared(self) -> int:
        """The bytes of shared memory of all stages."""
        return (self.block_m + self.block_n) * self.block_k * self.operand_bytes * self.stages

    @property
    def instruction_k(self) -> int:
        """K of one instruction."""
        if self.wgmma:
            return wgmma.wgmma_k(self.operand_bytes)
        return MMA_K * 2 // self.operand_bytes

    @property
    def vector_elements(self) -> int:
        """The elements of a vector of 16 bytes."""
        return VECTOR_ELEMENTS * 2 // self.operand_bytes

    def names(self, kind: str, left: bool, right: bool) -> tuple[str, str]:
        """The intrinsics that zero and accumulate; `left` and `right`: A and B are K-major."""
        if self.wgmma:
            return wgmma.wgmma_names(
                kind, self.block_n, "t" if right else "n", "n" if left else "t"
            )
        order = ("n" if left else "t") + ("t" if right else "n")
        return mma_names(kind, *self.warp, order, self.mma_k)


def _measured(
    rows: Sequence[TensorCoreTileTime],
    mainloop: Mainloop = Mainloop.TMA,
    scheduler: TileScheduler = TileScheduler.DATA_PARALLEL,
) -> tuple[TensorCoreTile, ...]:
    return tuple(
        TensorCoreTile(**asdict(row), mainloop=mainloop, scheduler=scheduler) for row in rows
    )


MULTISTAGE_TILES = _measured(TENSOR_CORE.multistage)
# Persistent and stream-K kernels, both warp-specialized.
PERSISTENT_TILES = (
    *_measured(TENSOR_CORE.persistent, Mainloop.WARP_SPECIALIZED, TileScheduler.PERSISTENT),
    *_measured(TENSOR_CORE.stream_k, Mainloop.WARP_SPECIALIZED, TileScheduler.STREAM_K),
)
