"""NVIDIA GPUs: one of each architecture as data, and others derived from what the driver says.

The rates of a row are those of the data sheet of one product: A100, RTX 3090, RTX 4090, H200.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.errors import ConfigError
from tilewright.core.host.cuda_device import CudaDevice
from tilewright.target.gpu import GpuTarget, MmaShape

_KIB, _MIB = 1024, 1024 * 1024
_HALF = tuple(MmaShape(kind, 16, 8, 16) for kind in ("f16", "bf16"))
_BYTES = tuple(MmaShape(kind, 16, 8, 32) for kind in ("i8", "u8"))
_SM80 = (*_HALF, MmaShape("tf32", 16, 8, 8), *_BYTES)
# By a warpgroup (wgmma); sm_90a alone has it, not the architectures that follow.
_SM90A = (
    *_SM80,
    *(MmaShape(kind, 64, 256, 16) for kind in ("f16", "bf16")),
    MmaShape("tf32", 64, 256, 8),
    *(MmaShape(kind, 64, 256, 32) for kind in ("i8", "u8")),
)

# The PTX version that an architecture's instructions need: wgmma of signed with unsigned bytes
# came with CUDA 12.4. Others take the oldest version that knows them.
_PTX = {"sm_90a": ("+ptx84",)}


def _nvidia(
    arch: str,
    sm_count: int,
    warps: int,
    shared: int,
    l2: int,
    rate: int,
    rates: tuple[int, int],
) -> GpuTarget:
    return GpuTarget(
        "nvptx64-nvidia-cuda",
        arch,
        _PTX.get(arch, ()),
        sm_count,
        32,
        warps,
        1024,
        65536,
        255,
        shared * _KIB,
        48 * _KIB,
        l2 * _MIB,
        rate * 10**9,
        rates[0] * 10**12,
        rates[1] * 10**12,
        _SM90A if arch == "sm_90a" else _SM80,
    )


NVIDIA: dict[str, GpuTarget] = {
    "sm_80": _nvidia("sm_80", 108, 64, 164, 40, 1555, (19, 312)),
    "sm_86": _nvidia("sm_86", 84, 48, 100, 6, 936, (35, 71)),
    "sm_89": _nvidia("sm_89", 128, 48, 100, 72, 1008, (82, 165)),
    "sm_90": _nvidia("sm_90", 132, 64, 228, 60, 4800, (67, 989)),
    "sm_90a": _nvidia("sm_90a", 132, 64, 228, 60, 4800, (67, 989)),
}

# By compute capability: f32 lanes of an SM, and operations a cycle of its tensor cores on 16-bit
# operands that accumulate in f32. Others are as the last of these before them.
_PER_SM = {
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
            f"{device.name} has compute capability {device.major}.{device.minor}; 8.0 is needed",
            help="compile for another GPU by its architecture: target='cuda -arch=sm_80'",
        )
    row = _row(capability)
    derived = _derived(device, row)
    near = abs(derived.memory_rate - row.memory_rate) <= _SAME * row.memory_rate
    same = device.sm_count == row.sm_count and capability == row.capability
    return row if same and near else derived


def _row(capability: tuple[int, int]) -> GpuTarget:
    """The row whose code a GPU runs: the last before it, as PTX is compatible with what follows.

    Instructions of sm_90a run on that architecture alone.
    """
    if capability == (9, 0):
        return NVIDIA["sm_90a"]
    known = [t for t in NVIDIA.values() if t.cpu != "sm_90a" and t.capability <= capability]
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
        memory_rate=memory or int(share * row.memory_rate),
        f32_rate=2 * lanes * cycles or int(share * row.f32_rate),
        mma_rate=operations * cycles or int(share * row.mma_rate),
    )
