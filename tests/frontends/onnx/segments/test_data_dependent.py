"""Why a model waits is one clear message."""

from __future__ import annotations

from tilewright.core.errors import Loc, UnsupportedError
from tilewright.frontends.onnx.segments.data_dependent import NeedsValue, RunsOnHost, Waiting


def test_what_is_said() -> None:
    error = NeedsValue("ReduceSum", "axes", "input 1", Loc("m.onnx", "r"))
    assert error.value == "axes"
    assert "ReduceSum: input 1 (axes) is known only when the model runs" in str(error)
    assert "m.onnx, node r" in str(error)
    assert "runs on the host" in str(RunsOnHost("StringConcat"))


def test_whoever_cannot_wait_calls_it_unsupported() -> None:
    assert issubclass(NeedsValue, Waiting)
    assert issubclass(Waiting, UnsupportedError)
