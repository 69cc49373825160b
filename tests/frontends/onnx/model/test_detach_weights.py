"""Weights are cut out of the serialized model without losing anything."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.for_each import for_each
from tilewright.core.errors import FrontendError
from tilewright.frontends.onnx.model.detach_weights import MIN_VIEW_BYTES, strip


def _model(*arrays: np.ndarray) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(a, f"w{i}") for i, a in enumerate(arrays)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
    graph = helper.make_graph([], "g", [x], [x], tensors)
    return helper.make_model(graph)


def test_long_data_is_cut_and_short_data_stays() -> None:
    big, small = np.arange(MIN_VIEW_BYTES, dtype=np.float32), np.arange(3, dtype=np.float32)
    model = _model(small, big, small)
    data = model.SerializeToString()
    parts = strip(memoryview(data))
    assert len(parts.message) < len(data) - big.nbytes + 100
    assert list(parts.raw) == [1]
    assert bytes(parts.raw[1]) == big.tobytes()
    left = onnx.ModelProto.FromString(parts.message)
    assert not left.graph.initializer[1].HasField("raw_data")
    left.graph.initializer[1].raw_data = bytes(parts.raw[1])
    assert left == model


def test_cut_data_is_a_view() -> None:
    data = _model(np.zeros(MIN_VIEW_BYTES, np.float32)).SerializeToString()
    assert strip(memoryview(data)).raw[0].obj is data


@for_each("keep", [1, 7, 100, -1, -5000])
def test_truncated(keep: int) -> None:
    data = _model(np.zeros(MIN_VIEW_BYTES * 2, np.float32)).SerializeToString()
    with pytest.raises(FrontendError) as caught:
        strip(memoryview(data[:keep]))
    assert caught.value.code == "onnx.damaged"


@for_each("data", [b"\xff" * 40, b"\x0b", b"version https://git-lfs"])
def test_garbage(data: bytes) -> None:
    with pytest.raises(FrontendError) as caught:
        strip(memoryview(data))
    assert caught.value.code == "onnx.damaged"
