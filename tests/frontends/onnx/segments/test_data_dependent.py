"""Why a model waits is one clear message."""

from __future__ import annotations

from tilewright.core.errors import Loc, UnsupportedError
from tilewright.frontends.onnx.segments.data_dependent import (
    DataDependent,
    HostOnly,
    NeedsConcreteSizes,
    NeedsConcreteValue,
)


def test_what_is_said() -> None:
    error = NeedsConcreteValue("ReduceSum", "axes", "input 1", Loc("m.onnx", "r"))
    assert error.value == "axes"
    assert "ReduceSum: input 1 (axes) is known only when the model runs" in str(error)
    assert "m.onnx, node r" in str(error)
    sizes = NeedsConcreteSizes("Squeeze", "dimension 0 may be 1", Loc("m.onnx", "s"))
    assert "Squeeze: dimension 0 may be 1" in str(sizes)
    assert "dims=" in str(sizes)
    assert "runs on the host" in str(HostOnly("StringConcat"))


def test_whoever_cannot_wait_calls_it_unsupported() -> None:
    assert issubclass(NeedsConcreteValue, DataDependent)
    assert issubclass(DataDependent, UnsupportedError)
