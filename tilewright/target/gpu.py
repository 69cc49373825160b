"""GPU targets: what the compiler knows of an NVIDIA GPU, as data."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.node import node

_KIB, _MIB = 1024, 1024 * 1024
# The most rows that one warp multiplies in an instruction.
_WARP_M = 16
VECTOR_BYTES = 16
"""The widest access of a thread: one load or store of four words."""
SECTOR_BYTES = 32
"""What the L2 reads at a time."""
INSTRUCTIONS = {
    "ldmatrix": "a warp reads matrices of 8 x 8 from shared memory, as operands of `mma.sync`",
    "cp.async": "a thread copies from global to shared memory, past its registers",
    "cooperative": "all blocks of a launch run at a time, so that they may wait for one another",
    "griddepcontrol": "a kernel starts before the previous ends (programmatic dependent launch)",
    "mbarrier": "a barrier in shared memory counts threads and bytes",
    "tma": "one thread copies a tile to shared memory (`cp.async.bulk.tensor`)",
    "setmaxnreg": "a warpgroup hands registers over to others",
    "wgmma": "four warps multiply matrices in shared memory",
}
"""What `GpuTarget.instructions` may name, beside the shapes of `mma.sync`."""


@node
class MmaShape:
    """A matrix multiply-accumulate instruction: m x n x k of `operands`, accumulated in f32.

    8-bit integers are accumulated in i32; one operand may be signed and the other not. 64 rows are
    those of a warpgroup (`wgmma`), fewer those of one warp (`mma.sync`).
    """

    operands: str
    m: int
    n: int
    k: int

    @property
    def is_of_warpgroup(self) -> bool:
        """Whether four warps do it together."""
        return self.m > _WARP_M


@node
class GpuTarget:
    """One GPU, as far as the compiler needs to know it.

    A thread block runs on one SM (streaming multiprocessor), in warps of `warp_size` threads. An SM
    has `registers_per_sm` registers of 32 bits and `shared_per_sm` bytes of shared memory for all
    its resident blocks, at most `blocks_per_sm`; of each the system keeps `reserved_shared` bytes
    for itself. A block may have `threads_per_block` threads, and `static_shared` bytes of shared
    memory without opting in to more. The rates are peaks of the data sheet, in bytes and
    operations a second; `mma_rate` is that of tensor cores on 16-bit operands, accumulating in f32.
    `clock` is the SMs' in Hz, when all of them work. `instructions` are keys of `INSTRUCTIONS`.
    """

    triple: str
    cpu: str
    features: tuple[str, ...]
    sm_count: int
    warp_size: int
    warps_per_sm: int
    blocks_per_sm: int
    threads_per_block: int
    registers_per_sm: int
    registers_per_thread: int
    shared_per_sm: int
    reserved_shared: int
    static_shared: int
    l2: int
    clock: int
    memory_rate: int
    f32_rate: int
    mma_rate: int
    mma_shapes: tuple[MmaShape, ...]
    instructions: tuple[str, ...]

    @property
    def architecture(self) -> str:
        """`nvptx64`."""
        return self.triple.split("-")[0]

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability that the code needs: `(9, 0)` for sm_90a."""
        digits = self.cpu.removeprefix("sm_").rstrip("af")
        return int(digits[:-1]), int(digits[-1])

    @property
    def mma_rate_per_sm(self) -> float:
        """Operations a second of the tensor cores of one SM, on 16-bit operands."""
        return self.mma_rate / self.sm_count

    @property
    def max_shared_per_block(self) -> int:
        """Shared memory that one block may use, in bytes."""
        return self.shared_per_sm - self.reserved_shared

    def resident_blocks(self, shared: int, threads: int) -> int:
        """How many blocks of so much shared memory, and so many threads, an SM runs at a time."""
        taken = shared + self.reserved_shared
        by_shared = self.shared_per_sm // taken if taken else self.blocks_per_sm
        by_threads = self.warps_per_sm * self.warp_size // threads
        return min(self.blocks_per_sm, by_shared, by_threads)

    def has(self, instruction: str) -> bool:
        """Whether there is an instruction of `INSTRUCTIONS`."""
        assert instruction in INSTRUCTIONS, instruction
        return instruction in self.instructions

    def warp_mma(self, operands: str) -> MmaShape | None:
        """The instruction of one warp on such operands, `None` if there is none."""
        own = (s for s in self.mma_shapes if s.operands == operands and not s.is_of_warpgroup)
        return next(own, None)

    def warpgroup_mma(self, operands: str) -> MmaShape | None:
        """The instruction of a warpgroup on such operands, `None` if there is none."""
        own = (s for s in self.mma_shapes if s.operands == operands and s.is_of_warpgroup)
        return next(own, None) if self.has("wgmma") else None

    @property
    def max_pipeline_stages(self) -> int | None:
        """The most stages that a pipeline of copies to shared memory can use, `None` for any.

        Copies that pass through registers are under way for one k-tile only: they take two stages.
        """
        return None if self.has("cp.async") else 2

    def lanes(self, bits: int) -> int:
        """How many elements of `bits` one vector access moves; none has less than a byte."""
        return 8 * VECTOR_BYTES // max(8, bits)

    @property
    def has_lane_fma(self) -> bool:
        """Whether an FMA takes one element of a vector load at no extra cost."""
        return True

    @property
    def has_pdl(self) -> bool:
        """Whether a kernel may start before the previous ends (programmatic dependent launch)."""
        return self.has("griddepcontrol")

    @property
    def emits_ptx(self) -> bool:
        """Whether LLVM emits PTX, which the driver assembles."""
        return True

    def describe(self) -> str:
        """One line for people."""
        return (
            f"{self.cpu} ({self.architecture}), {self.sm_count} SMs of "
            f"{self.warps_per_sm} warps, {self.registers_per_sm // _KIB}K registers and "
            f"{self.shared_per_sm // _KIB}K shared memory each, L2 {self.l2 // _MIB}M"
        )


def with_tf32(target: GpuTarget) -> GpuTarget:
    """A GPU whose f32 GEMMs may round their operands to tf32."""
    rounded = tuple(replace(s, operands="f32") for s in target.mma_shapes if s.operands == "tf32")
    return replace(target, mma_shapes=(*target.mma_shapes, *rounded))
