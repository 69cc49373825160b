"""What this machine can run: whether machine code made for a target fits it.

A target's `features` are all the instruction sets its code may use, as LLVM spells them
("+avx512f", "+dotprod"); `cpu` only says for which machine the code was tuned.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from tilewright.core.errors import ExecutionError

_ARCH_NAMES = {"arm64": "aarch64", "amd64": "x86_64"}

# LLVM itself tells only some of an ARM machine's features; Linux tells the others, its own way.
_LINUX_FEATURES = {
    "asimd": ("neon", "fp-armv8"),
    "asimddp": ("dotprod",),
    "asimdfhm": ("fp16fml",),
    "asimdhp": ("fullfp16",),
    "asimdrdm": ("rdm",),
    "atomics": ("lse",),
    "bf16": ("bf16",),
    "crc32": ("crc",),
    "dcpop": ("ccpp",),
    "fcma": ("complxnum",),
    "i8mm": ("i8mm",),
    "ilrcpc": ("rcpc-immo",),
    "jscvt": ("jsconv",),
    "lrcpc": ("rcpc",),
    "sha3": ("sha3",),
    "sme": ("sme",),
    "ssbs": ("ssbs",),
    "sve": ("sve",),
    "sve2": ("sve2",),
    "svebf16": ("bf16",),
    "svei8mm": ("i8mm",),
}

_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA = 158, 0x1023, 18


@cache
def host_features() -> frozenset[str]:
    """The instruction sets of this machine, as LLVM names them."""
    found = {name for name, present in llvm.get_host_cpu_features().items() if present}
    for flag in _linux_flags():
        found.update(_LINUX_FEATURES.get(flag, ()))
    return frozenset(found)


def missing_features(features: Iterable[str]) -> list[str]:
    """Those of a target's `features` that this machine is known not to have.

    A feature of which neither LLVM nor Linux says anything here ("+v8.2a") is taken as present.
    """
    told = set(llvm.get_host_cpu_features()).union(*_LINUX_FEATURES.values())
    wanted = {name.removeprefix("+") for name in features if not name.startswith("-")}
    return sorted(wanted & told - host_features())


def check_target(target: Mapping[str, Any]) -> None:
    """Refuse a target (`triple`, `cpu`, `features`) that this machine cannot run."""
    triple, host = target["triple"], llvm.get_default_triple()
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


def _linux_flags() -> list[str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:  # not Linux: LLVM's answer has to do
        return []
    lines = (line for line in text.splitlines() if line.startswith("Features"))
    return next(lines, ":").partition(":")[2].split()


def _request_tile_registers() -> None:
    """AMX's registers are large: Linux gives them only to a process that asks."""
    if ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) != 0:
        raise ExecutionError(
            "native.features",
            "the system does not let this process use AMX",
            help="compile the model for a target without AMX",
        )
