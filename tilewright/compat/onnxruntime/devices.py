"""Devices of values: always the CPU."""

from __future__ import annotations

from typing import Any

from tilewright.compat.onnxruntime.enums import OrtAllocatorType, OrtDeviceVendorId, OrtMemType

# Numbers and vendors as ONNX Runtime gives them.
_TYPES = {
    "cpu": (0, OrtDeviceVendorId.NONE),
    "cuda": (1, OrtDeviceVendorId.NVIDIA),
    "gpu": (1, OrtDeviceVendorId.NONE),
    "npu": (3, OrtDeviceVendorId.NONE),
    "cann": (3, OrtDeviceVendorId.HUAWEI),
    "dml": (1, OrtDeviceVendorId.MICROSOFT),
    "webgpu": (1, OrtDeviceVendorId.NONE),
}


class OrtDevice:
    """A device by its type and number."""

    def __init__(self, name: str, device_id: int, vendor: int) -> None:
        self.name = name
        self._id = device_id
        self._vendor = vendor

    @staticmethod
    def make(ort_device_name: str, device_id: int, vendor_id: int = -1) -> OrtDevice:
        """The device of this name, whether this machine has it or not."""
        name = ort_device_name
        if name not in _TYPES:
            raise Exception("Unsupported device type: " + name)
        vendor = _TYPES[name][1] if vendor_id == -1 else vendor_id
        return OrtDevice(name, device_id, int(vendor))

    def device_id(self) -> int:
        """Which of the devices of this type."""
        return self._id

    def device_type(self) -> int:
        """The number of the type."""
        return _TYPES[self.name][0]

    def device_vendor_id(self) -> int:
        """Who made it."""
        return self._vendor

    def device_mem_type(self) -> int:
        """Ordinary memory."""
        return 0


class OrtMemoryInfo:
    """Memory of a device, as applications describe it to allocators."""

    def __init__(
        self, name: str, allocator_type: OrtAllocatorType, device_id: int, mem_type: OrtMemType
    ) -> None:
        self.name = name
        self.allocator_type = allocator_type
        self.device_id = device_id
        self.mem_type = mem_type


class OrtArenaCfg:
    """How an arena is to grow: kept, without effect, since memory is planned by the compiler."""

    def __init__(self, *given: Any) -> None:
        self.given = given


def create_and_register_allocator(memory: OrtMemoryInfo, arena: OrtArenaCfg | None = None) -> None:
    """Accepted for the processor's memory; a model has one block, planned when it is compiled."""
    require_cpu(memory.name.lower(), memory.device_id)


def require_cpu(name: str, device_id: int = 0, vendor_id: int = -1) -> None:
    """Refuse a device whose memory cannot be had here, in ONNX Runtime's words."""
    if OrtDevice.make(name, device_id, vendor_id).name != "cpu":
        raise RuntimeError(
            "Can't allocate memory on the device using this package of OnnxRuntime. Please use the "
            "appropriate package of OnnxRuntime for your hardware to use this feature."
        )
