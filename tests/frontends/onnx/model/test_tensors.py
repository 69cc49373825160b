"""Tensors as arrays; external data stays inside the model's folder."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes  # noqa: F401 (names bfloat16)
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.for_each import for_each
from tilewright.core.dtypes import DTYPES, DType
from tilewright.core.errors import FrontendError, UnsupportedError
from tilewright.frontends.onnx.model.tensors import TensorReader


def _external(location: str, shape: tuple[int, ...] = (2, 3), **entries: int) -> TensorProto:
    tensor = TensorProto(
        name="w", data_type=TensorProto.FLOAT, dims=shape, data_location=TensorProto.EXTERNAL
    )
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@for_each(
    "dtype",
    ["float32", "float64", "float16", "int8", "uint16", "int64", "bool", "complex64", "bfloat16"],
)
def test_inline(dtype: str) -> None:
    array = np.arange(12).reshape(3, 4).astype(np.dtype(dtype))
    found = TensorReader(None).array(numpy_helper.from_array(array, "w"))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, array)


@for_each("dtype", [d for d in DTYPES.values() if d.is_small], ids=str)
@for_each("elements", [0, 1, 2, 3, 5, 8, 301])
def test_packed(dtype: DType, elements: int, tmp_path: Path) -> None:
    codes = np.random.default_rng(0).integers(0, 1 << dtype.bits, elements).astype(np.uint8)
    tensor = numpy_helper.from_array(codes.view(dtype.numpy), "w")
    inside = TensorReader(None).array(tensor)
    assert inside.dtype == dtype.numpy
    np.testing.assert_array_equal(inside.view("u1"), codes)
    (tmp_path / "w.bin").write_bytes(tensor.raw_data)
    external = _external("w.bin", (elements,))
    external.data_type = tensor.data_type
    np.testing.assert_array_equal(TensorReader(tmp_path).array(external).view("u1"), codes)
    tensor.raw_data += b"x"
    with pytest.raises(FrontendError, match="bytes do not fill"):
        TensorReader(None).array(tensor)


def test_raw_data_is_not_copied() -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    tensor = numpy_helper.from_array(array, "w")
    raw = b"x" + array.tobytes()
    tensor.ClearField("raw_data")
    found = TensorReader(None).array(tensor, memoryview(raw)[1:])
    np.testing.assert_array_equal(found, array)
    assert not found.flags.owndata
    assert not found.flags.writeable


def test_typed_fields_and_scalars_and_empty() -> None:
    typed = helper.make_tensor("w", TensorProto.INT32, [2, 2], [1, 2, 3, 4])
    np.testing.assert_array_equal(TensorReader(None).array(typed), [[1, 2], [3, 4]])
    scalar = numpy_helper.from_array(np.array(2.5, np.float32))
    assert TensorReader(None).array(scalar) == 2.5
    empty = numpy_helper.from_array(np.zeros((0, 3), np.float32))
    assert TensorReader(None).array(empty).shape == (0, 3)


def test_wrong_size() -> None:
    tensor = numpy_helper.from_array(np.zeros((2, 3), np.float32), "w")
    tensor.dims[0] = 5
    with pytest.raises(FrontendError, match="24 bytes do not fill FLOAT of shape"):
        TensorReader(None).array(tensor)
    typed = helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0])
    typed.dims[0] = 7
    with pytest.raises(FrontendError, match="does not fit"):
        TensorReader(None).array(typed)


def test_external_is_mapped(tmp_path: Path) -> None:
    array = np.arange(8, dtype=np.float32)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(array.tobytes())
    reader = TensorReader(tmp_path)
    found = reader.array(_external("data/w.bin", offset=4, length=24))
    np.testing.assert_array_equal(found, array[1:7].reshape(2, 3))
    assert not found.flags.owndata
    rest = reader.array(_external("data/w.bin", (7,), offset=4))
    np.testing.assert_array_equal(rest, array[1:])


def test_external_empty(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(b"")
    assert TensorReader(tmp_path).array(_external("w.bin", (0, 2))).shape == (0, 2)


@pytest.mark.parametrize(
    "location", ["", "../w.bin", "a/../../w.bin", "/etc/passwd", "link", "a\0b", "..\\w.bin"]
)
def test_external_outside_the_folder(tmp_path: Path, location: str) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(24))
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "a").mkdir()
    (folder / "link").symlink_to(tmp_path / "w.bin")
    with pytest.raises(FrontendError) as caught:
        TensorReader(folder).array(_external(location))
    assert caught.value.code == "onnx.external-path"


@pytest.mark.parametrize(
    "entries",
    [{"offset": 100}, {"offset": 8, "length": 24}, {"length": 10**20}, {"offset": -4}],
)
def test_external_range_outside_the_file(tmp_path: Path, entries: dict[str, int]) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(24))
    with pytest.raises(FrontendError) as caught:
        TensorReader(tmp_path).array(_external("w.bin", **entries))
    assert caught.value.code == "onnx.external-range"


def test_external_missing(tmp_path: Path) -> None:
    with pytest.raises(FrontendError, match=r"'w\.bin', which does not exist"):
        TensorReader(tmp_path).array(_external("w.bin"))
    with pytest.raises(FrontendError, match="no folder"):
        TensorReader(None).array(_external("w.bin"))


def test_external_dtype(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(6))
    tensor = _external("w.bin")
    tensor.data_type = 99
    with pytest.raises(UnsupportedError, match="element type 99"):
        TensorReader(tmp_path).array(tensor)
