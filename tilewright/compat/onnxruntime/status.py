"""ONNX Runtime's exceptions, and which of them each of our errors becomes.

As there, each derives from `Exception` alone, and its text begins with a number and a name.
"""

from __future__ import annotations

from tilewright.core.errors import (
    ConfigError,
    Error,
    ExecutionError,
    FrontendError,
    TypeCheckError,
    UnsupportedError,
    VerifyError,
)


class Fail(Exception):
    """What has no kind of its own."""


class InvalidArgument(Exception):
    """A wrong input, output or model."""


class NoSuchFile(Exception):
    """A model that is not there."""


class NoModel(Exception):
    """A session without a model."""


class EngineError(Exception):
    """A failure of the engine."""


class RuntimeException(Exception):
    """A failure while running."""


class InvalidProtobuf(Exception):
    """A file that is no ONNX model."""


class ModelLoaded(Exception):
    """A model that is loaded already."""


class NotImplemented(Exception):
    """Something that this engine does not have."""


class InvalidGraph(Exception):
    """A model that breaks ONNX's rules."""


class EPFail(Exception):
    """A failure of an execution provider."""


class ModelLoadCanceled(Exception):
    """Loading that was called off."""


class ModelRequiresCompilation(Exception):
    """A model that must be compiled beforehand."""


class NotFound(Exception):
    """Something that is not there."""


class DeviceReset(Exception):
    """A device that was reset."""


STATUS: dict[type[Exception], tuple[int, str]] = {
    Fail: (1, "FAIL"),
    InvalidArgument: (2, "INVALID_ARGUMENT"),
    NoSuchFile: (3, "NO_SUCHFILE"),
    NoModel: (4, "NO_MODEL"),
    EngineError: (5, "ENGINE_ERROR"),
    RuntimeException: (6, "RUNTIME_EXCEPTION"),
    InvalidProtobuf: (7, "INVALID_PROTOBUF"),
    ModelLoaded: (8, "MODEL_LOADED"),
    NotImplemented: (9, "NOT_IMPLEMENTED"),
    InvalidGraph: (10, "INVALID_GRAPH"),
    EPFail: (11, "EP_FAIL"),
    ModelLoadCanceled: (12, "MODEL_LOAD_CANCELED"),
    ModelRequiresCompilation: (13, "MODEL_REQUIRES_COMPILATION"),
    NotFound: (14, "NOT_FOUND"),
    DeviceReset: (15, "DEVICE_RESET"),
}

_BY_CODE: dict[str, type[Exception]] = {
    "onnx.file": NoSuchFile,
    "onnx.unreadable": NoSuchFile,
    "onnx.damaged": InvalidProtobuf,
    "onnx.format": InvalidProtobuf,
    "onnx.opset": Fail,
    "onnx.undefined-value": InvalidArgument,
    "onnx.external-data": InvalidArgument,
    "onnx.external-path": InvalidArgument,
    "onnx.external-range": InvalidArgument,
    "run.index": InvalidArgument,
}
_BY_CLASS: tuple[tuple[type[Error], type[Exception]], ...] = (
    (UnsupportedError, NotImplemented),
    (FrontendError, InvalidGraph),
    (VerifyError, InvalidGraph),
    (TypeCheckError, Fail),
    (ExecutionError, Fail),
    (ConfigError, Fail),
)


def error(kind: type[Exception], message: str) -> Exception:
    """An exception of this kind with the text that ONNX Runtime would give it."""
    number, name = STATUS[kind]
    return kind(f"[ONNXRuntimeError] : {number} : {name} : {message}")


def translated(cause: Error) -> Exception:
    """One of our errors as ONNX Runtime's of the same meaning; the text is ours."""
    kind = _BY_CODE.get(cause.code)
    if kind is None:
        kind = next((theirs for ours, theirs in _BY_CLASS if isinstance(cause, ours)), Fail)
    return error(kind, str(cause))
