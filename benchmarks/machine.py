"""What a figure needs beside it: the machine, its measured roofs, the versions of the engines."""

from __future__ import annotations

import platform
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tilewright.runtime.roofline.machine_roofline import machine_roofline
from tilewright.target.host import host

PACKAGES = (
    *("tilewright", "onnxruntime", "openvino", "torch", "jax"),
    *("iree-base-compiler", "apache-tvm", "transformers", "numpy"),
)


def describe_machine(counts: Iterable[int]) -> dict[str, Any]:
    """Processor, caches, cores, system, packages, and the roofs at each thread count."""
    machine = host()
    return {
        "cpu": machine.cpu,
        "architecture": machine.architecture,
        "description": machine.describe(),
        "cores": machine.cores,
        "caches": {"l1": machine.l1, "l2": machine.l2, "l3": machine.l3},
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": dict(_versions()),
        "roofs": [_roofs(threads) for threads in dict.fromkeys(counts)],
    }


def _roofs(threads: int) -> dict[str, Any]:
    """Billions a second, measured anew; the best that was ever measured here."""
    found = machine_roofline(threads, again=True)
    return {
        "threads": threads,
        "operations": {element: rate / 1e9 for element, rate in found.flops_per_second.items()},
        "bytes": {level.name: level.bytes_per_second / 1e9 for level in found.levels},
    }


def _versions() -> Iterable[tuple[str, str]]:
    for package in PACKAGES:
        try:
            yield package, version(package)
        except PackageNotFoundError:
            continue
