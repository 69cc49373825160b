"""`OrtValue`: a value that applications hand to sessions and take from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper

from tilewright.compat.onnxruntime.devices import require_cpu
from tilewright.compat.onnxruntime.types import element_of, numpy_of, tensor_name, type_name
from tilewright.runtime.host_memory import address


class OrtValue:
    """A tensor, a sequence, a map or an empty optional, in the memory of the processor."""

    def __init__(self, value: Any, type: str) -> None:
        """`type` is as ONNX Runtime spells it; applications use the class methods."""
        self._value = value
        self._type = type

    @classmethod
    def ortvalue_from_numpy(
        cls, numpy_obj: np.ndarray, /, device_type: str = "cpu", device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:  # fmt: skip
        """A tensor that lies where the array lies; one that is not contiguous is copied."""
        require_cpu(device_type, device_id, vendor_id)
        if not isinstance(numpy_obj, np.ndarray) or numpy_obj.dtype.kind in "OUSTV":
            raise RuntimeError(
                "Creation of OrtValues is currently only supported from non-string numpy arrays"
            )
        element = element_of(numpy_obj.dtype)
        if element is None:
            raise RuntimeError(f"Numpy_type {numpy_obj.dtype} can't be converted to MLDataType.")
        native = numpy_obj.astype(numpy_obj.dtype.newbyteorder("="), order="C", copy=False)
        return cls(native, tensor_name(element))

    @classmethod
    def ortvalue_from_numpy_with_onnx_type(
        cls, data: np.ndarray, /, onnx_element_type: int
    ) -> OrtValue:
        """A tensor whose elements are the array's bits read as another type of the same size."""
        stored = helper.tensor_dtype_to_np_dtype(onnx_element_type)
        if stored.itemsize != data.dtype.itemsize:
            raise ValueError(f"elements of {data.dtype} and {stored} have different sizes")
        return cls(np.asarray(data, order="C").view(stored), tensor_name(onnx_element_type))

    @classmethod
    def ortvalue_from_shape_and_type(
        cls, shape: Sequence[int], element_type: Any, device_type: str = "cpu", device_id: int = 0,
        vendor_id: int = -1,
    ) -> OrtValue:  # fmt: skip
        """A tensor of unspecified content; `element_type` is NumPy's, or ONNX's number."""
        require_cpu(device_type, device_id, vendor_id)
        if isinstance(element_type, int):
            stored, element = helper.tensor_dtype_to_np_dtype(element_type), element_type
        else:
            stored = np.dtype(element_type)
            found = element_of(stored)
            if found is None:
                raise RuntimeError(f"Numpy_type {stored} can't be converted to MLDataType.")
            element = found
        return cls(np.empty(tuple(shape), stored), tensor_name(element))

    @classmethod
    def from_dlpack(cls, data: Any, /) -> OrtValue:
        """A tensor that shares its memory with anything that speaks DLPack."""
        return cls.ortvalue_from_numpy(np.from_dlpack(data))

    @classmethod
    def of_result(cls, value: Any, type: str) -> OrtValue:
        """A result of a model."""
        return cls(value, type)

    @property
    def value(self) -> Any:
        """The array, list or dictionary; `None` if empty."""
        return self._value

    def _get_c_value(self) -> OrtValue:
        return self

    def data_ptr(self) -> int:
        """The address of the first element."""
        return address(self._tensor())

    def device_name(self) -> str:
        """Where it lies."""
        return "cpu"

    def shape(self) -> list[int]:
        """Its sizes."""
        return list(self._tensor().shape)

    def data_type(self) -> str:
        """Its type, as `tensor(float)`."""
        return self._type

    def element_type(self) -> int:
        """ONNX's number of the type of its elements."""
        found = element_of(self._tensor().dtype)
        assert found is not None, self._type
        return found

    def tensor_size_in_bytes(self) -> int:
        """The bytes of its elements."""
        return self._tensor().nbytes

    def has_value(self) -> bool:
        """Whether it is not an empty optional."""
        return self._value is not None

    def is_tensor(self) -> bool:
        """Whether it is a tensor."""
        return isinstance(self._value, np.ndarray)

    def is_sparse_tensor(self) -> bool:
        """There are no sparse ones here."""
        return False

    def is_tensor_sequence(self) -> bool:
        """Whether it is a sequence of tensors."""
        return isinstance(self._value, list) and self._type.startswith("seq(tensor")

    def numpy(self) -> np.ndarray:
        """The tensor as an array, in the same memory."""
        array = self._tensor()
        element = element_of(array.dtype)
        if element is None or numpy_of(element) is None:
            raise RuntimeError(
                f"No corresponding Numpy type for Tensor Type. {self._type[len('tensor(') : -1]}"
            )
        return array

    def update_inplace(self, data: Any) -> None:
        """Copy new elements into it."""
        source = data.numpy() if isinstance(data, OrtValue) else np.asarray(data)
        target = self._tensor()
        if source.size != target.size:
            raise RuntimeError(
                "The input size of numpy arrays does not match the size of the OrtValue."
            )
        if source.dtype != target.dtype:
            raise RuntimeError(f"The OrtValue has elements of {target.dtype}, not {source.dtype}.")
        np.copyto(target, source.reshape(target.shape))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype, copy=copy)

    def __dlpack__(self, **options: Any) -> Any:
        return self.numpy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def _tensor(self) -> np.ndarray:
        if not isinstance(self._value, np.ndarray):
            raise RuntimeError("Only OrtValues that are Tensors are currently supported")
        return self._value


def result_type(value: Any, declared: Any) -> str:
    """The type of a result: of a tensor what it is, of others what the model declares."""
    if isinstance(value, np.ndarray):
        element = element_of(value.dtype)
        if element is not None:
            return tensor_name(element)
    return type_name(declared)
