"""What this machine can run: whether machine code made for a target fits it.

A target's `features` are all the instruction sets its code may use, as LLVM spells them
("+avx512f", "+dotprod"); `cpu` only says for which machine the code was tuned.

Linux confirms nearly all of them. LLVM is asked only about the others, since loading it takes more
memory than most models.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tilewright.core.errors import ExecutionError

_ARCH_NAMES = {"arm64": "aarch64", "amd64": "x86_64"}

# Linux's names for what LLVM calls otherwise, or does not tell of this machine.
_LINUX_FEATURES = {
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

# A matter of the operating system, not of code that is made for a model.
_NOT_IN_CODE = frozenset({"shstk"})

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


@cache
def host_features() -> frozenset[str]:
    """The instruction sets of this machine, as LLVM names them."""
    return frozenset(name for name, present in _llvm_features().items() if present) | _confirmed()


def missing_features(features: Iterable[str]) -> list[str]:
    """Those of a target's `features` that this machine is known not to have.

    A feature of which neither LLVM nor Linux says anything here ("+v8.2a") is taken as present.
    """
    wanted = {name.removeprefix("+") for name in features if not name.startswith("-")}
    doubtful = wanted - _confirmed() - _NOT_IN_CODE
    if not doubtful:
        return []
    told = set(_llvm_features()).union(*_LINUX_FEATURES.values())
    return sorted(doubtful & told - host_features())


def _confirmed() -> frozenset[str]:
    """What Linux says this machine has, as LLVM names it."""
    flags = _linux_flags()
    return frozenset(flags).union(*(_LINUX_FEATURES.get(flag, ()) for flag in flags))


def _llvm_features() -> Mapping[str, bool]:
    # Imported here because loading LLVM takes long and much memory.
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_features()


def check_target(target: Mapping[str, Any]) -> None:
    """Refuse a target (`triple`, `cpu`, `features`) that this machine cannot run."""
    triple, host = target["triple"], f"{os.uname().machine}-{sys.platform}"
    if _platform(triple) != _platform(host):
        raise ExecutionError(
            "native.platform",
            f"the model was compiled for {triple}, this machine is {host}",
            help="compile it on this machine, or with this machine as the target",
        )
    missing = missing_features(target.get("features", ()))
    if missing:
        raise ExecutionError(
            "native.features",
            f"the model was compiled for {target.get('cpu') or 'another machine'} "
            f"and needs instructions this machine has not: {', '.join(missing)}",
            help='compile it with target="native" here, or for a target both machines share',
        )
    if any(name.startswith("+amx") for name in target.get("features", ())):
        _request_tile_registers()


def _platform(triple: str) -> tuple[str, str]:
    arch, _, system = triple.partition("-")
    known = ("linux", "darwin", "macosx", "windows")
    return _ARCH_NAMES.get(arch, arch), next((name for name in known if name in system), system)


@cache
def _linux_flags() -> tuple[str, ...]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:  # LLVM's answer has to do
        return ()
    lines = (line for line in text.splitlines() if line.startswith(("Features", "flags")))
    return tuple(next(lines, ":").partition(":")[2].split())


def _request_tile_registers() -> None:
    """AMX's registers are large: Linux gives them only to a process that asks."""
    if ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) != 0:
        raise ExecutionError(
            "native.features",
            "the system does not let this process use AMX",
            help="compile the model for a target without AMX",
        )
