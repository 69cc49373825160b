"""The GPU of this machine, as the CUDA driver describes it; nothing is run on it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

from tilewright.core.node import node

LIBRARIES = ("libcuda.so.1", "libcuda.so")
# The driver's numbers of the attributes, by the field that holds them.
ATTRIBUTES = {
    "major": 75,
    "minor": 76,
    "sm_count": 16,
    "clock_khz": 13,
    "memory_clock_khz": 36,
    "bus_bits": 37,
    "l2": 38,
    "warp_size": 10,
    "threads_per_sm": 39,
    "threads_per_block": 1,
    "registers_per_sm": 82,
    "shared_per_sm": 81,
    "static_shared": 8,
}


@node
class CudaDevice:
    """What the driver tells of a GPU; a clock that it does not tell is 0."""

    name: str
    major: int
    minor: int
    sm_count: int
    clock_khz: int
    memory_clock_khz: int
    bus_bits: int
    l2: int
    warp_size: int
    threads_per_sm: int
    threads_per_block: int
    registers_per_sm: int
    shared_per_sm: int
    static_shared: int


@cache
def cuda_device() -> CudaDevice | None:
    """The first GPU of this machine; None without a GPU or a driver."""
    return read_device(_load)


def read_device(load: Callable[[], Any | None]) -> CudaDevice | None:
    """The first GPU of the driver that `load` gives."""
    library = load()
    if library is None or library.cuInit(0) != 0:
        return None
    device, name = ctypes.c_int(), ctypes.create_string_buffer(256)
    if library.cuDeviceGet(ctypes.byref(device), 0) != 0:
        return None
    library.cuDeviceGetName(name, len(name), device)
    values = {field: _attribute(library, number, device) for field, number in ATTRIBUTES.items()}
    return CudaDevice(name.value.decode(errors="replace"), **values)


def _attribute(library: Any, number: int, device: ctypes.c_int) -> int:
    value = ctypes.c_int()
    status = library.cuDeviceGetAttribute(ctypes.byref(value), number, device)
    return value.value if status == 0 else 0


def _load() -> Any | None:
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
