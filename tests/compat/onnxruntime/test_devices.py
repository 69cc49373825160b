from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from tests.compat.onnxruntime.both import assert_alike
from tests.for_each import for_each
from tilewright.compat.onnxruntime.devices import require_cpu


@for_each("name", ["cpu", "cuda", "gpu", "npu", "cann", "dml", "webgpu", "CUDA", "toaster"])
def test_devices(name: str) -> None:
    def call(engine: ModuleType) -> Any:
        d = engine.OrtDevice.make(name, 1)
        return d.device_type(), d.device_id(), d.device_vendor_id(), d.device_mem_type()

    assert_alike(call)


def test_only_the_processor_has_memory() -> None:
    require_cpu("cpu")
    with pytest.raises(RuntimeError, match="Can't allocate memory on the device"):
        require_cpu("cuda")


def test_allocators_are_accepted() -> None:
    def call(engine: ModuleType, name: str) -> Any:
        kinds = engine.OrtAllocatorType.ORT_ARENA_ALLOCATOR, engine.OrtMemType.DEFAULT
        memory = engine.OrtMemoryInfo(name, kinds[0], 0, kinds[1])
        engine.create_and_register_allocator(memory, None)
        engine.OrtArenaCfg(0, -1, -1, -1)
        return memory.name

    assert_alike(lambda engine: call(engine, "Cpu"))
