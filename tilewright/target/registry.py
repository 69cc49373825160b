"""Targets by name: `native`, the CPUs of the tables, `cuda` and `cuda -arch=sm_90a`.

`cuda` is the GPU of this machine, or an H200 on a machine without one: it compiles for a GPU all
the same. A target with `-arch=` is the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.errors import ConfigError
from tilewright.core.host.cuda_device import cuda_device
from tilewright.target.cpu import CpuTarget
from tilewright.target.gpu import GpuTarget
from tilewright.target.host import host
from tilewright.target.models.arm import ARM
from tilewright.target.models.nvidia import NVIDIA, target_of
from tilewright.target.models.x86 import X86
from tilewright.target.target import Target

NATIVE, CUDA = "native", "cuda"
CPUS: dict[str, CpuTarget] = {**X86, **ARM}
GPUS: dict[str, GpuTarget] = NVIDIA
DEFAULT_GPU = "sm_90a"


def cpu_names() -> tuple[str, ...]:
    """The names that `resolve_cpu` knows."""
    return (NATIVE, *CPUS)


def gpu_names() -> tuple[str, ...]:
    """The names that `resolve_gpu` knows."""
    return (CUDA, *(f"{CUDA} -arch={arch}" for arch in GPUS))


def target_names() -> tuple[str, ...]:
    """The names that `resolve_target` knows."""
    return (*cpu_names(), *gpu_names())


def resolve_target(name: str) -> Target:
    """The target called `name`."""
    if name.startswith(CUDA):
        return resolve_gpu(name)
    if name not in cpu_names():
        raise _unknown(name, target_names())
    return resolve_cpu(name)


def resolve_cpu(name: str) -> CpuTarget:
    """The CPU called `name`; `native` is this machine."""
    if name == NATIVE:
        return host()
    if name not in CPUS:
        raise _unknown(name, cpu_names())
    return CPUS[name]


def resolve_gpu(name: str) -> GpuTarget:
    """The GPU called `name`: `cuda` is that of this machine, `cuda -arch=` one of the table."""
    word, *options = name.split()
    if name == CUDA:
        device = cuda_device()
        return GPUS[DEFAULT_GPU] if device is None else target_of(device)
    arch = DEFAULT_GPU
    for option in options:
        key, _, arch = option.partition("=")
        if key == "-arch" and arch not in GPUS:
            raise ConfigError(
                "target.unknown-architecture",
                f"no GPU architecture {arch!r} is supported",
                help=f"-arch= is one of {', '.join(GPUS)}",
            )
        if key != "-arch":
            raise _unknown(name, gpu_names())
    if word != CUDA:
        raise _unknown(name, gpu_names())
    return GPUS[arch]


def _unknown(name: str, known: Sequence[str]) -> ConfigError:
    return ConfigError(
        "target.unknown", f"no target named {name!r}", help=f"one of {', '.join(known)}"
    )
