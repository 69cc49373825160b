"""NVIDIA GPUs: one of each architecture as data, and others derived from what the driver says.

The figures of a row are those of the data sheet of one product: T4, A100, RTX 3090, RTX 4090, H200,
B200. An architecture's own instructions are what its PTX has for every chip of it, as `sm_100` has
them: fifth-generation tensor cores (`tcgen05`, of sm_100a alone) are not used.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.errors import ConfigError
from tilewright.core.host.cuda_device import CudaDevice
from tilewright.core.node import node
from tilewright.target.gpu import GpuTarget, MmaShape

_KIB, _MIB = 1024, 1024 * 1024
# The shapes of `mma.sync`: Turing's, and those of all that follow.
_SM75 = (MmaShape("f16", 16, 8, 8), *(MmaShape(kind, 8, 8, 16) for kind in ("i8", "u8")))
_SM80 = (
    *(MmaShape(kind, 16, 8, 16) for kind in ("f16", "bf16")),
    MmaShape("tf32", 16, 8, 8),
    *(MmaShape(kind, 16, 8, 32) for kind in ("i8", "u8")),
)
# By a warpgroup (wgmma); sm_90a alone has it, not the architectures that follow.
_SM90A = (
    *_SM80,
    *(MmaShape(kind, 64, 256, 16) for kind in ("f16", "bf16")),
    MmaShape("tf32", 64, 256, 8),
    *(MmaShape(kind, 64, 256, 32) for kind in ("i8", "u8")),
)
# Instructions, each generation's with those of the one before.
_TURING = ("ldmatrix", "cooperative")
_AMPERE = (*_TURING, "cp.async")
_HOPPER = (*_AMPERE, "griddepcontrol", "mbarrier", "tma")

# The PTX version that an architecture's instructions need: `ldmatrix` came with CUDA 10.2, wgmma of
# signed with unsigned bytes with CUDA 12.4. Others take the oldest version that knows them.
_PTX = {"sm_75": ("+ptx65",), "sm_90a": ("+ptx84",)}


@node
class _Sm:
    """What all chips of an architecture have in common: one SM, sizes in KiB."""

    warps: int
    blocks: int
    shared: int
    reserved: int
    shapes: tuple[MmaShape, ...]
    instructions: tuple[str, ...]


@node
class _Card:
    """A product: SMs, MHz, L2 in MiB, GB/s, and TFLOP/s of f32 and of tensor cores."""

    sm_count: int
    clock: int
    l2: int
    memory: int
    f32: float
    mma: float


def _nvidia(arch: str, sm: _Sm, card: _Card) -> GpuTarget:
    return GpuTarget(
        triple="nvptx64-nvidia-cuda",
        cpu=arch,
        features=_PTX.get(arch, ()),
        sm_count=card.sm_count,
        warp_size=32,
        warps_per_sm=sm.warps,
        blocks_per_sm=sm.blocks,
        threads_per_block=1024,
        registers_per_sm=65536,
        registers_per_thread=255,
        shared_per_sm=sm.shared * _KIB,
        reserved_shared=sm.reserved * _KIB,
        static_shared=48 * _KIB,
        l2=card.l2 * _MIB,
        clock=card.clock * 10**6,
        memory_rate=card.memory * 10**9,
        f32_rate=round(card.f32 * 10**12),
        mma_rate=round(card.mma * 10**12),
        mma_shapes=sm.shapes,
        instructions=sm.instructions,
    )


_H200 = _Card(132, 1980, 60, 4800, 67, 989)

NVIDIA: dict[str, GpuTarget] = {
    arch: _nvidia(arch, sm, card)
    for arch, sm, card in (
        ("sm_75", _Sm(32, 16, 64, 0, _SM75, _TURING), _Card(40, 1590, 4, 320, 8.1, 65)),
        ("sm_80", _Sm(64, 32, 164, 1, _SM80, _AMPERE), _Card(108, 1410, 40, 1555, 19, 312)),
        ("sm_86", _Sm(48, 16, 100, 1, _SM80, _AMPERE), _Card(82, 1695, 6, 936, 35.6, 71)),
        ("sm_89", _Sm(48, 24, 100, 1, _SM80, _AMPERE), _Card(128, 2520, 72, 1008, 82.6, 165)),
        ("sm_90", _Sm(64, 32, 228, 1, _SM80, _HOPPER), _H200),
        ("sm_90a", _Sm(64, 32, 228, 1, _SM90A, (*_HOPPER, "setmaxnreg", "wgmma")), _H200),
        ("sm_100", _Sm(64, 32, 228, 1, _SM80, _HOPPER), _Card(148, 1965, 126, 8000, 75, 2250)),
    )
}

# By compute capability: f32 lanes of an SM, and operations a cycle of its tensor cores on 16-bit
# operands that accumulate in f32. Others are as the last of these before them.
_PER_SM = {
    (7, 5): (64, 1024),
    (8, 0): (64, 2048),
    (8, 6): (128, 512),
    (9, 0): (128, 4096),
    (10, 0): (128, 8192),
    (12, 0): (128, 512),
}
# How near the driver's memory rate comes to that of a row which describes the same product.
_SAME = 0.1


def target_of(device: CudaDevice) -> GpuTarget:
    """The target of a GPU: its row of the table, or one derived from SMs, clocks and bandwidth."""
    capability = (device.major, device.minor)
    if capability < min(_PER_SM):
        raise ConfigError(
            "target.old-gpu",
            f"{device.name} has compute capability {device.major}.{device.minor}; the oldest that "
            f"is supported is {'.'.join(map(str, min(_PER_SM)))}",
            help=f"compile for another GPU by its architecture: -arch= {', '.join(NVIDIA)}",
        )
    row = _row(capability)
    derived = _derived(device, row)
    near = abs(derived.memory_rate - row.memory_rate) <= _SAME * row.memory_rate
    same = device.sm_count == row.sm_count and capability == row.capability
    return row if same and near else derived


def _row(capability: tuple[int, int]) -> GpuTarget:
    """The row whose code a GPU runs: the last before it, as PTX is compatible with what follows.

    Instructions of an architecture with a letter run on that one alone.
    """
    if capability == (9, 0):
        return NVIDIA["sm_90a"]
    known = [t for t in NVIDIA.values() if t.cpu[-1].isdigit() and t.capability <= capability]
    return max(known, key=lambda t: t.capability)


def _derived(device: CudaDevice, row: GpuTarget) -> GpuTarget:
    """What the driver says of a GPU; where it tells no clock, the rates of `row` for each SM."""
    capability = (device.major, device.minor)
    lanes, operations = _PER_SM[max(known for known in _PER_SM if known <= capability)]
    cycles = device.sm_count * device.clock_khz * 1000
    share = device.sm_count / row.sm_count
    # two transfers a cycle of the memory's clock
    memory = 2 * device.memory_clock_khz * 1000 * device.bus_bits // 8
    return replace(
        row,
        sm_count=device.sm_count,
        warp_size=device.warp_size,
        warps_per_sm=device.threads_per_sm // device.warp_size,
        threads_per_block=device.threads_per_block,
        registers_per_sm=device.registers_per_sm,
        shared_per_sm=device.shared_per_sm,
        static_shared=device.static_shared,
        l2=device.l2,
        clock=device.clock_khz * 1000 or row.clock,
        memory_rate=memory or int(share * row.memory_rate),
        f32_rate=2 * lanes * cycles or int(share * row.f32_rate),
        mma_rate=operations * cycles or int(share * row.mma_rate),
    )
