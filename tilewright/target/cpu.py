"""CPU targets: instruction set, vector registers, caches, cores.

`resolve("native")` describes this machine; the names of `NAMED` describe common ones, for compiling
on another machine than the one that runs the model.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path

from tilewright.core.disk_cache import fingerprint, open_cache
from tilewright.core.errors import ConfigError
from tilewright.core.host.cache_sizes import cache_sizes
from tilewright.core.host.cpu_features import linux_features
from tilewright.core.host.identity import machine_identity
from tilewright.core.node import node


@node
class Target:
    """One machine, as far as the compiler needs to know it.

    `vector_bits` and `vector_registers` size register tiles; `l1`, `l2` (bytes, per core) size
    cache tiles; `l3` is shared by the `cores`.
    """

    triple: str
    cpu: str
    features: tuple[str, ...]
    vector_bits: int
    vector_registers: int
    l1: int
    l2: int
    l3: int
    cores: int

    def lanes(self, bits: int) -> int:
        """How many elements of `bits` one vector register holds; none has less than a byte."""
        return max(1, self.vector_bits // max(8, bits))

    @property
    def l1_ways(self) -> int:
        """How many lines the first cache holds whose addresses differ by `l1 // l1_ways` bytes.

        That of x86 is looked up by the address within a page; those of Arm's servers have four.
        """
        return max(1, self.l1 // PAGE_BYTES) if self.architecture == "x86_64" else 4

    @property
    def multiplies_by_lane(self) -> bool:
        """Whether a vector can be multiplied by one element of another at no extra cost."""
        return self.architecture == "aarch64"

    @property
    def bf16_products(self) -> str:
        """How bf16 is multiplied: by `tiles`, by `pairs` in vectors, or not at all (empty)."""
        known = BF16_UNITS.get(self.architecture, ())
        return next((how for feature, how in known if f"+{feature}" in self.features), "")

    @property
    def rounds_to_bf16(self) -> bool:
        """Whether one instruction converts a vector of f32 to bf16."""
        return {"+avx512bf16", "+bf16"} & {*self.features} != set()

    @property
    def computes_in_f16(self) -> bool:
        """Whether vectors of f16 are multiplied and added as such."""
        return f"+{F16_UNITS.get(self.architecture)}" in self.features

    @property
    def orders_zeros(self) -> bool:
        """Whether one instruction knows that of two zeros the positive one is the greater."""
        return self.architecture == "aarch64"

    @property
    def emits_text(self) -> bool:
        """Whether LLVM gives assembly instead of machine code."""
        return False

    @property
    def architecture(self) -> str:
        """`x86_64` or `aarch64`."""
        return self.triple.split("-")[0]

    def describe(self) -> str:
        """One line for people."""
        caches = "/".join(f"{size // 1024}K" for size in (self.l1, self.l2, self.l3))
        return (
            f"{self.cpu} ({self.architecture}), {self.vector_bits}-bit vectors "
            f"x {self.vector_registers}, caches {caches}, {self.cores} cores"
        )


# Vector width and register count by the widest extension present, first match wins.
VECTOR_UNITS = (
    ("avx512f", 512, 32),
    ("avx2", 256, 16),
    ("avx", 256, 16),
    ("sse2", 128, 16),
    ("neon", 128, 32),
)

# Extensions that multiply bf16 and sum in f32, the fastest first.
BF16_UNITS = {
    "x86_64": (("amx-bf16", "tiles"), ("avx512bf16", "pairs")),
    "aarch64": (("bf16", "pairs"),),
}

# Extensions whose vectors compute in f16, twice as many lanes as in f32.
F16_UNITS = {"x86_64": "avx512fp16", "aarch64": "fullfp16"}

# What a cache loads at once; the same on all machines of these architectures.
LINE_BYTES = 64
PAGE_BYTES = 4096
_KIB, _MIB = 1024, 1024 * 1024
_X86 = "x86_64-unknown-linux-gnu"
# All that a level's code may use: a machine without one of them must not run it.
_V2 = ("+cx16", "+popcnt", "+sse3", "+ssse3", "+sse4.1", "+sse4.2")
_V3 = (*_V2, "+avx", "+avx2", "+bmi", "+bmi2", "+f16c", "+fma", "+lzcnt", "+movbe")
_V4 = (*_V3, "+avx512f", "+avx512bw", "+avx512cd", "+avx512dq", "+avx512vl")
_AMX = ("+amx-tile", "+amx-bf16", "+amx-int8")
_ICL = ("+avx512bitalg", "+avx512ifma", "+avx512vbmi", "+avx512vbmi2", "+avx512vpopcntdq", "+gfni")
_SPR = (*_V4, *_ICL, "+avx512bf16", "+avx512fp16", "+avx512vnni", "+avxvnni", *_AMX)
_N1 = ("+neon", "+dotprod", "+fullfp16", "+lse", "+rdm")
_V1 = ("+neon", "+bf16", "+dotprod", "+fullfp16", "+i8mm", "+lse", "+rdm", "+sve")
NAMED: dict[str, Target] = {
    "x86-64-v2": Target(_X86, "x86-64-v2", _V2, 128, 16, 32 * _KIB, 256 * _KIB, 8 * _MIB, 4),
    "x86-64-v3": Target(_X86, "x86-64-v3", _V3, 256, 16, 32 * _KIB, 512 * _KIB, 16 * _MIB, 4),
    "x86-64-v4": Target(_X86, "x86-64-v4", _V4, 512, 32, 32 * _KIB, 1 * _MIB, 32 * _MIB, 4),
    "sapphirerapids": Target(
        _X86, "sapphirerapids", _SPR, 512, 32, 48 * _KIB, 2 * _MIB, 32 * _MIB, 8
    ),
    "aarch64": Target(
        "aarch64-unknown-linux-gnu",
        "generic",
        ("+neon",),
        128,
        32,
        64 * _KIB,
        1 * _MIB,
        32 * _MIB,
        4,
    ),
    "neoverse-n1": Target(
        "aarch64-unknown-linux-gnu",
        "neoverse-n1",
        _N1,
        128,
        32,
        64 * _KIB,
        1 * _MIB,
        32 * _MIB,
        4,
    ),
    "neoverse-v1": Target(
        "aarch64-unknown-linux-gnu",
        "neoverse-v1",
        _V1,
        128,
        32,
        64 * _KIB,
        1 * _MIB,
        32 * _MIB,
        8,
    ),
}


def target_names() -> tuple[str, ...]:
    """The names that `resolve` knows."""
    return ("native", *NAMED)


def resolve(name: str) -> Target:
    """The target called `name`."""
    if name == "native":
        return host()
    if name not in NAMED:
        raise unknown_target(name, target_names())
    return NAMED[name]


def unknown_target(name: str, known: Sequence[str]) -> ConfigError:
    """The error for a name that no target has."""
    return ConfigError(
        "target.unknown", f"no target named {name!r}", help=f"one of {', '.join(known)}"
    )


@cache
def host() -> Target:
    """This machine; what LLVM says of it is remembered, since loading LLVM takes long."""
    store, identity = open_cache(), machine_identity()
    if store is None or identity is None:
        return _ask_llvm()
    # this file is part of the key: it says what a target is
    source = Path(__file__).read_bytes()
    key = fingerprint("host", identity, str(usable_cores()), source)
    path = store.get(key)
    if path is None:
        text = json.dumps(asdict(_ask_llvm()))
        path = store.put(key, lambda file: file.write_text(text))
    known = json.loads(path.read_text())
    return Target(**{**known, "features": tuple(known["features"])})


def _ask_llvm() -> Target:
    import llvmlite.binding as llvm

    told = llvm.get_host_cpu_features()
    # LLVM is silent about much of what an AArch64 machine has
    found = {name for name, present in told.items() if present} | (linux_features() - {*told})
    bits, registers = _vector_unit(found)
    caches = cache_sizes()
    return Target(
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        tuple(f"+{name}" for name in sorted(found)),
        bits,
        registers,
        caches.get(1, 32 * _KIB),
        caches.get(2, 512 * _KIB),
        caches.get(3, 8 * _MIB),
        usable_cores(),
    )


def _vector_unit(features: set[str]) -> tuple[int, int]:
    for name, bits, registers in VECTOR_UNITS:
        if name in features:
            return bits, registers
    return 128, 16


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))
