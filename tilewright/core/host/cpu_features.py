"""The instruction sets that Linux says this machine has, as LLVM names them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

# Linux's names for what LLVM calls otherwise, or does not tell of this machine.
LINUX_FEATURES = {
    "3dnowprefetch": ("prfchw",),
    "abm": ("lzcnt",),
    "amx_bf16": ("amx-bf16",),
    "amx_complex": ("amx-complex",),
    "amx_fp16": ("amx-fp16",),
    "amx_int8": ("amx-int8",),
    "amx_tile": ("amx-tile",),
    "asimd": ("neon", "fp-armv8"),
    "asimddp": ("dotprod",),
    "asimdfhm": ("fp16fml",),
    "asimdhp": ("fullfp16",),
    "asimdrdm": ("rdm",),
    "atomics": ("lse",),
    "avx512_bf16": ("avx512bf16",),
    "avx512_bitalg": ("avx512bitalg",),
    "avx512_fp16": ("avx512fp16",),
    "avx512_vbmi2": ("avx512vbmi2",),
    "avx512_vnni": ("avx512vnni",),
    "avx512_vp2intersect": ("avx512vp2intersect",),
    "avx512_vpopcntdq": ("avx512vpopcntdq",),
    "avx_ifma": ("avxifma",),
    "avx_vnni": ("avxvnni",),
    "bf16": ("bf16",),
    "bmi1": ("bmi",),
    "crc32": ("crc",),
    "dcpop": ("ccpp",),
    "fcma": ("complxnum",),
    "i8mm": ("i8mm",),
    "ilrcpc": ("rcpc-immo",),
    "jscvt": ("jsconv",),
    "lahf_lm": ("sahf",),
    "lm": ("64bit",),
    "lrcpc": ("rcpc",),
    "ospke": ("pku",),
    "pclmulqdq": ("pclmul",),
    "pni": ("sse3",),
    "rdrand": ("rdrnd",),
    "sha3": ("sha3",),
    "sha_ni": ("sha",),
    "sme": ("sme",),
    "ssbs": ("ssbs",),
    "sse4_1": ("sse4.1",),
    "sse4_2": ("sse4.2", "crc32"),
    "sve": ("sve",),
    "sve2": ("sve2",),
    "svebf16": ("bf16",),
    "svei8mm": ("i8mm",),
    "user_shstk": ("shstk",),
}


def linux_features() -> frozenset[str]:
    """What Linux tells of this machine under a name that LLVM has another one for."""
    return frozenset().union(*(LINUX_FEATURES.get(flag, ()) for flag in linux_flags()))


@cache
def linux_flags() -> tuple[str, ...]:
    """The abilities of the processor, as Linux names them; none where it does not tell."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:  # LLVM's answer has to do
        return ()
    lines = (line for line in text.splitlines() if line.startswith(("Features", "flags")))
    return tuple(next(lines, ":").partition(":")[2].split())
