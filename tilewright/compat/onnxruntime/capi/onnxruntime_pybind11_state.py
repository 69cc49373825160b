"""What applications import from ONNX Runtime's binding to C++: exceptions, options, types."""

from __future__ import annotations

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
    OrtMemType,
    OrtSparseFormat,
)
from tilewright.compat.onnxruntime.environment import (
    disable_telemetry_events,
    enable_telemetry_events,
    get_build_info,
    get_device,
    get_version_string,
    has_collective_ops,
    set_default_logger_severity,
    set_default_logger_verbosity,
    set_global_thread_pool_sizes,
    set_seed,
)
from tilewright.compat.onnxruntime.iobinding import IOBinding as SessionIOBinding
from tilewright.compat.onnxruntime.model import ModelMetadata
from tilewright.compat.onnxruntime.options import RunOptions, SessionOptions
from tilewright.compat.onnxruntime.providers import get_all_providers, get_available_providers
from tilewright.compat.onnxruntime.session import InferenceSession
from tilewright.compat.onnxruntime.status import (
    DeviceReset,
    EngineError,
    EPFail,
    Fail,
    InvalidArgument,
    InvalidGraph,
    InvalidProtobuf,
    ModelLoadCanceled,
    ModelLoaded,
    ModelRequiresCompilation,
    NoModel,
    NoSuchFile,
    NotFound,
    NotImplemented,
    RuntimeException,
)
from tilewright.compat.onnxruntime.types import NodeArg
from tilewright.compat.onnxruntime.values import OrtValue

__all__ = [
    "DeviceReset",
    "EPFail",
    "EngineError",
    "ExecutionMode",
    "ExecutionOrder",
    "Fail",
    "GraphOptimizationLevel",
    "InferenceSession",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelMetadata",
    "ModelRequiresCompilation",
    "NoModel",
    "NoSuchFile",
    "NodeArg",
    "NotFound",
    "NotImplemented",
    "OrtAllocatorType",
    "OrtArenaCfg",
    "OrtDevice",
    "OrtMemType",
    "OrtMemoryInfo",
    "OrtSparseFormat",
    "OrtValue",
    "RunOptions",
    "RuntimeException",
    "SessionIOBinding",
    "SessionOptions",
    "create_and_register_allocator",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_build_info",
    "get_device",
    "get_version_string",
    "has_collective_ops",
    "set_default_logger_severity",
    "set_default_logger_verbosity",
    "set_global_thread_pool_sizes",
    "set_seed",
]
