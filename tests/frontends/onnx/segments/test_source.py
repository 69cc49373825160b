from __future__ import annotations

import numpy as np
import pytest

from tests.frontends.onnx.segments.segmented_models import AXES, parsed
from tilewright.core.errors import Error, ExecutionError
from tilewright.frontends.onnx.segments.source import OnnxSegmentSource


def test_what_a_model_declares() -> None:
    source = OnnxSegmentSource(AXES, {"n": 3})
    assert [str(port) for port in source.inputs] == ["x: f32[3, m]", "axes: i64[k]"]
    assert [port.name for port in source.outputs] == ["y"]
    assert source.dims == {"n": 3}
    x = np.ones((3, 4), np.float32)
    assert source.checked("x", x) is x
    with pytest.raises(ExecutionError, match="input x is"):
        source.checked("x", x.T)


def test_what_is_saved_is_the_same_model() -> None:
    source = OnnxSegmentSource(AXES, {"n": 3})
    data, weights = source.serialized()
    again = OnnxSegmentSource.from_serialized(data, weights, "saved.tw", source.dims)
    assert again.file == "saved.tw"
    assert again.inputs == source.inputs
    assert again.operators == source.operators
    assert again.remaining().reads() == source.remaining().reads()


def test_errors_name_the_model() -> None:
    with pytest.raises(Error) as caught:
        OnnxSegmentSource(parsed("g (float[n] x) => (float[n] y) { y = Neg (x) }"), {"q": 1})
    assert caught.value.loc.file
