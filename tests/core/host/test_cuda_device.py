from __future__ import annotations

from typing import Any

from tilewright.core.host.cuda_device import ATTRIBUTES, CudaDevice, read_device

VALUES = {number: 1000 + number for number in ATTRIBUTES.values()}


class Driver:
    """A driver that answers every attribute but the memory's clock."""

    def __init__(self, status: int = 0, devices: int = 1) -> None:
        self.status, self.devices = status, devices

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuDeviceGet(self, device: Any, number: int) -> int:
        return 0 if number < self.devices else 101

    def cuDeviceGetName(self, name: Any, size: int, device: Any) -> int:
        name.value = b"A GPU"
        return 0

    def cuDeviceGetAttribute(self, value: Any, number: int, device: Any) -> int:
        if number == ATTRIBUTES["memory_clock_khz"]:
            return 1
        value._obj.value = VALUES[number]
        return 0


def test_a_device() -> None:
    wanted = {field: 1000 + number for field, number in ATTRIBUTES.items()}
    assert read_device(Driver) == CudaDevice("A GPU", **{**wanted, "memory_clock_khz": 0})


def test_no_device() -> None:
    assert read_device(lambda: None) is None
    assert read_device(lambda: Driver(status=100)) is None
    assert read_device(lambda: Driver(devices=0)) is None
