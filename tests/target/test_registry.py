from __future__ import annotations

import pytest

from tests.for_each import for_each
from tests.target.models.cuda_devices import RTX_3060
from tilewright.core.errors import ConfigError
from tilewright.target.host import host
from tilewright.target.registry import (
    CPUS,
    DEFAULT_GPU,
    GPUS,
    cpu_names,
    gpu_names,
    resolve_cpu,
    resolve_gpu,
    resolve_target,
    target_names,
)


def test_names() -> None:
    assert resolve_cpu("native") is host()
    assert resolve_gpu("cuda -arch=sm_80").cpu == "sm_80"
    assert all(resolve_target(name) is resolve_cpu(name) for name in cpu_names())
    assert all(resolve_target(name) == resolve_gpu(name) for name in gpu_names())
    assert target_names() == (*cpu_names(), *gpu_names())
    assert {*CPUS} < {*cpu_names()}


def test_cuda_is_the_gpu_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tilewright.target.registry.cuda_device", lambda: None)
    assert resolve_gpu("cuda") is GPUS[DEFAULT_GPU]
    monkeypatch.setattr("tilewright.target.registry.cuda_device", lambda: RTX_3060)
    found = resolve_gpu("cuda")
    assert (found.cpu, found.sm_count) == ("sm_86", 28)
    assert resolve_target("cuda") == found
    assert resolve_gpu("cuda -arch=sm_86") is GPUS["sm_86"]


@for_each("name", ["cuda -fast=1", "cudax", "native"])
def test_unknown_gpus(name: str) -> None:
    with pytest.raises(ConfigError, match="no target named"):
        resolve_gpu(name)


@for_each("arch", ["sm_1", "sm_70", "sm_100a", ""])
def test_an_unknown_architecture_lists_the_known(arch: str) -> None:
    with pytest.raises(ConfigError, match=r"target\.unknown-architecture") as caught:
        resolve_gpu(f"cuda -arch={arch}")
    assert caught.value.help == f"-arch= is one of {', '.join(GPUS)}"
    assert {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100"} == {*GPUS}


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"target.unknown.*z80") as caught:
        resolve_target("z80")
    assert {"cuda", "native", "x86-64-v3"} <= {*caught.value.help.replace(",", "").split()}
    with pytest.raises(ConfigError) as caught:
        resolve_cpu("z80")
    assert "cuda" not in caught.value.help
