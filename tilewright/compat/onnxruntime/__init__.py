"""ONNX Runtime's Python interface, with Tilewright behind it.

    from tilewright.compat.onnxruntime import InferenceSession
    session = InferenceSession("model.onnx")
    outputs = session.run(None, {"x": x})

`tilewright run-app` gives it to applications that `import onnxruntime` and know nothing of this.
"""

from __future__ import annotations

from tilewright.compat.onnxruntime import capi
from tilewright.compat.onnxruntime.devices import (
    OrtArenaCfg,
    OrtDevice,
    OrtMemoryInfo,
    create_and_register_allocator,
)
from tilewright.compat.onnxruntime.enums import (
    ExecutionMode,
    ExecutionOrder,
    GraphOptimizationLevel,
    OrtAllocatorType,
    OrtDeviceVendorId,
    OrtMemType,
    OrtSparseFormat,
)
from tilewright.compat.onnxruntime.environment import (
    VERSION,
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
    preload_dlls,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
)
from tilewright.compat.onnxruntime.iobinding import IOBinding
from tilewright.compat.onnxruntime.model import ModelMetadata
from tilewright.compat.onnxruntime.options import RunOptions, SessionOptions
from tilewright.compat.onnxruntime.providers import get_all_providers, get_available_providers
from tilewright.compat.onnxruntime.session import InferenceSession
from tilewright.compat.onnxruntime.types import NodeArg
from tilewright.compat.onnxruntime.values import OrtValue

__version__ = VERSION

__all__ = [
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "ModelMetadata",
    "NodeArg",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtDeviceVendorId",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtSparseFormat",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "capi",
    "create_and_register_allocator",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "preload_dlls",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]
