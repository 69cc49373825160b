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
from typing import Any

from tilewright.core.errors import ExecutionError
from tilewright.core.host.cpu_features import LINUX_FEATURES, linux_flags

_ARCH_NAMES = {"arm64": "aarch64", "amd64": "x86_64"}

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
    told = set(_llvm_features()).union(*LINUX_FEATURES.values())
    return sorted(doubtful & told - host_features())


def _confirmed() -> frozenset[str]:
    """What Linux says this machine has, as LLVM names it."""
    flags = linux_flags()
    return frozenset(flags).union(*(LINUX_FEATURES.get(flag, ()) for flag in flags))


def _llvm_features() -> Mapping[str, bool]:
    # Imported here because loading LLVM takes long and much memory.
    import llvmlite.binding as llvm

    features: Mapping[str, bool] = llvm.get_host_cpu_features()
    return features


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


def _request_tile_registers() -> None:
    """AMX's registers are large: Linux gives them only to a process that asks."""
    if ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA) != 0:
        raise ExecutionError(
            "native.features",
            "the system does not let this process use AMX",
            help="compile the model for a target without AMX",
        )
