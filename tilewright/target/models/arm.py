"""AArch64: the architecture as such, and Arm's server cores."""

from __future__ import annotations

from tilewright.target.cpu import CpuTarget

_KIB, _MIB = 1024, 1024 * 1024
_TRIPLE = "aarch64-unknown-linux-gnu"
_N1 = ("+neon", "+dotprod", "+fullfp16", "+lse", "+rdm")
_V1 = ("+neon", "+bf16", "+dotprod", "+fullfp16", "+i8mm", "+lse", "+rdm", "+sve")


def _arm(cpu: str, features: tuple[str, ...], cores: int) -> CpuTarget:
    # code is written for 128-bit NEON, also where a core has SVE
    return CpuTarget(_TRIPLE, cpu, features, 128, 32, 64 * _KIB, 1 * _MIB, 32 * _MIB, cores)


ARM: dict[str, CpuTarget] = {
    "aarch64": _arm("generic", ("+neon",), 4),
    "neoverse-n1": _arm("neoverse-n1", _N1, 4),
    "neoverse-v1": _arm("neoverse-v1", _V1, 8),
}
