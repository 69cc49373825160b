from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.compat.onnxruntime.both import affine
from tilewright.compat.onnxruntime.model import OpenedModel
from tilewright.compat.onnxruntime.status import InvalidArgument, NotImplemented
from tilewright.compat.onnxruntime.values import OrtValue

BYTES = affine().SerializeToString()


def test_what_a_model_declares() -> None:
    opened = OpenedModel(BYTES, {}, {"N": 2, "other": 3})
    assert [d.name for d in opened.inputs] == ["x", "y"]
    assert [d.name for d in opened.outputs] == ["z", "o"]
    assert [d.name for d in opened.overridable] == ["w"]
    assert opened.dims == {"N": 2}
    assert opened.names_of_sizes == {"N"}


def test_other_initializers() -> None:
    zeros = OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32))
    opened = OpenedModel(BYTES, {"w": zeros}, {})
    (weight,) = opened.whole().graph.initializer
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(weight), np.zeros(3))
    with pytest.raises(InvalidArgument, match="no initializer nope"):
        OpenedModel(BYTES, {"nope": zeros}, {})


def test_initializers_as_inputs() -> None:
    assert not OpenedModel(BYTES, {}, {}).with_inputs(["w"]).graph.initializer


def test_a_model_with_external_data_is_saved_whole(tmp_path: Path) -> None:
    large = affine()
    weight = np.ones((100, 100), np.float32)
    large.graph.initializer.append(onnx.numpy_helper.from_array(weight, "large"))
    path = tmp_path / "m.onnx"
    onnx.save(large, path, save_as_external_data=True, location="m.bin", size_threshold=100)
    (tmp_path / "elsewhere").mkdir()
    OpenedModel(str(path), {}, {}).save(str(tmp_path / "elsewhere" / "m.onnx"))
    saved = onnx.load(tmp_path / "elsewhere" / "m.onnx")
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(saved.graph.initializer[1]), weight)


def test_ort_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.ort").write_bytes(b"ORTM")
    with pytest.raises(NotImplemented, match="ORT format"):
        OpenedModel(str(tmp_path / "m.ort"), {}, {})
