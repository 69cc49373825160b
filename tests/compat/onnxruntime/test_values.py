from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, TypeProto

from tests.compat.onnxruntime.both import assert_alike
from tests.for_each import for_each
from tilewright.compat.onnxruntime.values import OrtValue, result_type

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def _all(value: Any) -> Any:
    return (
        value.shape(),
        value.data_type(),
        value.element_type(),
        value.device_name(),
        value.tensor_size_in_bytes(),
        value.has_value(),
        value.is_tensor(),
        value.is_sparse_tensor(),
        value.is_tensor_sequence(),
        value.__dlpack_device__(),
    )


@for_each(
    "name",
    ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
     "float32", "float64"],
)  # fmt: skip
def test_what_a_tensor_says(name: str) -> None:
    array = np.ones((2, 3), name)
    assert_alike(lambda engine: _all(engine.OrtValue.ortvalue_from_numpy(array)))
    assert_alike(lambda engine: engine.OrtValue.ortvalue_from_numpy(array).numpy())
    assert_alike(lambda engine: _all(engine.OrtValue.ortvalue_from_shape_and_type([2, 3], name)))


@for_each(
    "make",
    [
        lambda engine: engine.OrtValue.ortvalue_from_numpy(X.T).numpy(),
        lambda engine: engine.OrtValue.ortvalue_from_numpy([1, 2]),
        lambda engine: engine.OrtValue.ortvalue_from_numpy(np.array(["a"])),
        lambda engine: engine.OrtValue.ortvalue_from_numpy(X, "cuda", 0),
        lambda engine: engine.OrtValue.ortvalue_from_numpy(X, "toaster", 0),
        lambda engine: engine.OrtValue.ortvalue_from_shape_and_type([2, 3], 1).data_type(),
        lambda engine: engine.OrtValue.ortvalue_from_shape_and_type([2, 3], 16).data_type(),
        lambda engine: engine.OrtValue.ortvalue_from_shape_and_type([2, 3], 16).numpy(),
        lambda engine: engine.OrtValue.ortvalue_from_numpy_with_onnx_type(
            np.zeros((2, 2), np.uint16), TensorProto.BFLOAT16
        ).data_type(),
        lambda engine: engine.OrtValue.from_dlpack(X).numpy(),
        lambda engine: np.asarray(engine.OrtValue.ortvalue_from_numpy(X)),
        lambda engine: np.from_dlpack(engine.OrtValue.ortvalue_from_numpy(X)),
    ],
)
def test_making_and_reading(make: Callable[[ModuleType], Any]) -> None:
    assert_alike(make)


def test_memory_is_shared() -> None:
    def call(engine: ModuleType) -> Any:
        array = X.copy()
        value = engine.OrtValue.ortvalue_from_numpy(array)
        value.update_inplace(X + 1)
        return array, value.data_ptr() == array.ctypes.data

    assert_alike(call)


def test_updates_must_fit() -> None:
    assert_alike(lambda e: e.OrtValue.ortvalue_from_numpy(X.copy()).update_inplace(X[0]))
    value = OrtValue.ortvalue_from_numpy(X.copy())
    with pytest.raises(RuntimeError, match="float32, not float64"):
        value.update_inplace(X.astype(np.float64))
    value.update_inplace(OrtValue.ortvalue_from_numpy(X + 2))
    np.testing.assert_array_equal(value.numpy(), X + 2)


def test_other_kinds_of_values() -> None:
    sequence = OrtValue.of_result([X], "seq(tensor(float))")
    assert sequence.is_tensor_sequence()
    assert not sequence.is_tensor()
    with pytest.raises(RuntimeError, match="Tensors"):
        sequence.shape()
    assert not OrtValue.of_result(None, "optional(tensor(float))").has_value()


def test_bits_of_another_size_are_refused() -> None:
    with pytest.raises(ValueError, match="sizes"):
        OrtValue.ortvalue_from_numpy_with_onnx_type(X, TensorProto.BFLOAT16)
    with pytest.raises(RuntimeError, match="MLDataType"):
        OrtValue.ortvalue_from_shape_and_type([1], "datetime64[s]")
    with pytest.raises(RuntimeError, match="MLDataType"):
        OrtValue.ortvalue_from_numpy(np.zeros(1, "datetime64[s]"))


def test_types_of_results() -> None:
    assert result_type(np.zeros(1, ml_dtypes.bfloat16), TypeProto()) == "tensor(bfloat16)"
    declared = TypeProto()
    declared.sequence_type.elem_type.tensor_type.elem_type = TensorProto.INT64
    assert result_type([], declared) == "seq(tensor(int64))"
