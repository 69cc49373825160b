"""This machine as a CPU target: what LLVM and the operating system say of it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path

from tilewright.core.disk_cache import fingerprint, open_cache
from tilewright.core.host.cache_sizes import cache_sizes
from tilewright.core.host.cpu_features import linux_features
from tilewright.core.host.identity import machine_identity
from tilewright.target import cpu
from tilewright.target.calibration import cpu as costs
from tilewright.target.calibration.cpu import calibrated
from tilewright.target.calibration.store import read_calibration
from tilewright.target.cpu import CpuTarget
from tilewright.target.target import read_target, write_target

# Vector width and register count by the widest extension present, first match wins.
VECTOR_UNITS = (
    ("avx512f", 512, 32),
    ("avx2", 256, 16),
    ("avx", 256, 16),
    ("sse2", 128, 16),
    ("neon", 128, 32),
)

_KIB, _MIB = 1024, 1024 * 1024


@cache
def host() -> CpuTarget:
    """This machine, with the costs that it was measured to have where it is calibrated."""
    rates = read_calibration()
    known = _known_host()
    return known if rates is None else replace(known, costs=calibrated(rates, known.costs))


def _known_host() -> CpuTarget:
    """This machine; what LLVM says of it is cached on disk, since loading LLVM takes long."""
    store, identity = open_cache(), machine_identity()
    if store is None or identity is None:
        return _ask_llvm()
    # the sources that say what a target is are part of the key
    sources = [Path(file).read_bytes() for file in (__file__, cpu.__file__, costs.__file__)]
    key = fingerprint("host", identity, str(usable_cores()), *sources)
    path = store.get(key)
    if path is not None:
        known = read_target(json.loads(path.read_text()))
        assert isinstance(known, CpuTarget)
        return known
    found = _ask_llvm()
    text = json.dumps(write_target(found))
    store.keep(key, lambda file: file.write_text(text))
    return found


def _ask_llvm() -> CpuTarget:
    import llvmlite.binding as llvm

    told = llvm.get_host_cpu_features()
    # LLVM is silent about much of what an AArch64 machine has
    found = {name for name, present in told.items() if present} | (linux_features() - {*told})
    bits, registers = _vector_unit(found)
    caches = cache_sizes()
    return CpuTarget(
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
