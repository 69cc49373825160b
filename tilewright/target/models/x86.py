"""x86-64 by micro-architecture level, and processors by LLVM's name."""

from __future__ import annotations

from tilewright.target.cpu import CpuTarget

_KIB, _MIB = 1024, 1024 * 1024
_TRIPLE = "x86_64-unknown-linux-gnu"
# All that a level's code may use: a machine without one of them must not run it.
_V2 = ("+cx16", "+popcnt", "+sse3", "+ssse3", "+sse4.1", "+sse4.2")
_V3 = (*_V2, "+avx", "+avx2", "+bmi", "+bmi2", "+f16c", "+fma", "+lzcnt", "+movbe")
_V4 = (*_V3, "+avx512f", "+avx512bw", "+avx512cd", "+avx512dq", "+avx512vl")
_AMX = ("+amx-tile", "+amx-bf16", "+amx-int8")
_ICL = ("+avx512bitalg", "+avx512ifma", "+avx512vbmi", "+avx512vbmi2", "+avx512vpopcntdq", "+gfni")
_SPR = (*_V4, *_ICL, "+avx512bf16", "+avx512fp16", "+avx512vnni", "+avxvnni", *_AMX)


def _x86(
    cpu: str,
    features: tuple[str, ...],
    vectors: tuple[int, int],
    caches: tuple[int, int, int],
    cores: int,
) -> CpuTarget:
    return CpuTarget(_TRIPLE, cpu, features, *vectors, *caches, cores)


X86: dict[str, CpuTarget] = {
    row.cpu: row
    for row in (
        _x86("x86-64-v2", _V2, (128, 16), (32 * _KIB, 256 * _KIB, 8 * _MIB), 4),
        _x86("x86-64-v3", _V3, (256, 16), (32 * _KIB, 512 * _KIB, 16 * _MIB), 4),
        _x86("x86-64-v4", _V4, (512, 32), (32 * _KIB, 1 * _MIB, 32 * _MIB), 4),
        _x86("sapphirerapids", _SPR, (512, 32), (48 * _KIB, 2 * _MIB, 32 * _MIB), 8),
    )
}
