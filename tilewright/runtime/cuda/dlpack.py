"""DLPack: arrays of other libraries where they lie, and ours for them. Nothing is copied.

A capsule holds a struct that says where an array is, with a function to be called when it is not
needed any more. Who takes the array out of a capsule renames it and calls that function.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.core.dtypes import BF16, BOOL, C64, C128, FLOATS, INTEGERS, DType

CPU, CUDA, CUDA_MANAGED = 1, 2, 13
_FRESH, _USED = b"dltensor", b"used_dltensor"
_KINDS = {"int": 0, "uint": 1, "float": 2, "complex": 5, "bool": 6}
_BFLOAT = 4


def _code(dtype: DType) -> tuple[int, int]:
    """An element type as DLPack has it: a number for its kind, and its bits."""
    return (_BFLOAT if dtype == BF16 else _KINDS[dtype.kind]), dtype.bits


_DTYPES = {_code(dtype): dtype for dtype in (BOOL, *INTEGERS, *FLOATS, C64, C128)}


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_kind", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("offset", ctypes.c_uint64),
    )


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_DESTRUCTOR = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = (("tensor", _Tensor), ("owner", ctypes.c_void_p), ("delete", ctypes.c_void_p))


def _python(name: str, result: Any, *arguments: Any) -> Any:
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


_new = _python("PyCapsule_New", ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_pointer = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
_rename = _python("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
# These see a capsule that is being destroyed, which must not be counted once more.
_is_named = _python("PyCapsule_IsValid", ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)
_dying_pointer = _python("PyCapsule_GetPointer", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)


class Borrowed:
    """An array of another library, where it lies; given back when nobody holds this any more."""

    def __init__(self, capsule: Any) -> None:
        self._managed = _Managed.from_address(_pointer(capsule, _FRESH))
        _rename(capsule, _USED)
        tensor = self._managed.tensor
        self.address = (tensor.data or 0) + tensor.offset
        self.device = (tensor.device_kind, tensor.device)
        self.ndim = tensor.rank
        self.shape = _numbers(tensor.shape, tensor.rank)
        known = _DTYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
        self.dtype: np.dtype | None = known.numpy if known else None
        strides = _numbers(tensor.strides, tensor.rank)
        self.contiguous = not strides or _is_contiguous(self.shape, strides)

    def __del__(self) -> None:
        managed = self.__dict__.get("_managed")
        if managed is not None and managed.delete:
            _DELETER(managed.delete)(ctypes.addressof(managed))


def _numbers(address: int | None, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_int64 * count).from_address(address)) if address and count else ()


def _is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return math.prod(shape) == 0
        expected *= size
    return True


# What was handed out and not given back: each struct with what it points to and keeps alive.
_OUT: dict[int, tuple[Any, ...]] = {}


def _delete(address: int) -> None:
    _OUT.pop(address, None)


def _destroy(capsule: int) -> None:
    if _is_named(capsule, _FRESH):  # nobody has taken the array
        _OUT.pop(_dying_pointer(capsule, _FRESH), None)


_DELETE, _DESTROY = _DELETER(_delete), _DESTRUCTOR(_destroy)
for _function in (_DELETE, _DESTROY):
    # Others may call it as long as the process lives, after this module is gone.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_function))
_DELETE_AT, _DESTROY_AT = (ctypes.cast(f, ctypes.c_void_p).value for f in (_DELETE, _DESTROY))


def capsule(
    address: int, shape: Sequence[int], dtype: DType, device: tuple[int, int], owner: object
) -> Any:
    """A capsule with the array at an address; `owner` lives until nobody needs it any more."""
    rank = len(shape)
    strides = (math.prod(shape[n + 1 :]) for n in range(rank))
    numbers = (ctypes.c_int64 * (2 * rank))(*shape, *strides)
    first = ctypes.addressof(numbers)
    tensor = _Tensor(address, *device, rank, *_code(dtype), 1, first, first + 8 * rank, 0)
    managed = _Managed(tensor, None, _DELETE_AT)
    place = ctypes.addressof(managed)
    _OUT[place] = (managed, numbers, owner)
    return _new(place, _FRESH, _DESTROY_AT)
