"""NVIDIA GPUs by architecture; the rates are those of the data sheet of one product of each."""

from __future__ import annotations

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
