from __future__ import annotations

import onnxruntime.capi.onnxruntime_pybind11_state as theirs

from tests.for_each import for_each
from tilewright.compat.onnxruntime import status
from tilewright.core.errors import (
    Error,
    ExecutionError,
    FrontendError,
    TypeCheckError,
    index_outside,
)
from tilewright.core.errors import UnsupportedError as Unsupported


def test_the_exceptions_are_theirs() -> None:
    found = {
        name: kind.__bases__
        for name, kind in vars(theirs).items()
        if isinstance(kind, type) and issubclass(kind, Exception)
    }
    assert {kind.__name__: kind.__bases__ for kind in status.STATUS} == found


@for_each(
    ("cause", "kind"),
    [
        (Unsupported("onnx.operator", "no such operator"), status.NotImplemented),
        (FrontendError("onnx.damaged", "cut off"), status.InvalidProtobuf),
        (FrontendError("onnx.file", "not there"), status.NoSuchFile),
        (FrontendError("onnx.cycle", "in a circle"), status.InvalidGraph),
        (TypeCheckError("matmul.operands", "do not fit"), status.Fail),
        (ExecutionError("run.check", "does not hold"), status.Fail),
        (index_outside(7, 3, "embedding"), status.InvalidArgument),
        (Error("other", "something"), status.Fail),
    ],
)
def test_our_errors_have_a_counterpart(cause: Error, kind: type[Exception]) -> None:
    found = status.translated(cause)
    assert type(found) is kind
    number, name = status.STATUS[kind]
    assert str(found).startswith(f"[ONNXRuntimeError] : {number} : {name} : ")
    assert cause.message in str(found)
