from __future__ import annotations

import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import torch

from tests.for_each import for_each
from tilewright.core.dtypes import BF16, BOOL, F16, F32, I64, DType
from tilewright.runtime.cuda import dlpack
from tilewright.runtime.cuda.dlpack import CPU, Borrowed, capsule


class _Array(np.ndarray):
    """An array of which weak references can be made."""


class _Exported:
    """Memory of an array as DLPack."""

    def __init__(self, array: np.ndarray, dtype: DType) -> None:
        self.array = array
        self.dtype = dtype

    def __dlpack__(self, **given: Any) -> Any:
        place = self.array.__array_interface__["data"][0]
        return capsule(place, self.array.shape, self.dtype, (CPU, 0), self.array)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU, 0


@for_each("dtype", [F32, F16, I64, BOOL])
@for_each("shape", [(), (3,), (2, 3, 4), (0, 5)])
def test_others_read_ours(dtype: DType, shape: tuple[int, ...]) -> None:
    array = np.arange(24)[: int(np.prod(shape))].reshape(shape).astype(dtype.numpy)
    for read in (np.from_dlpack, lambda x: torch.from_dlpack(x).numpy()):
        found = read(_Exported(array, dtype))
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)


def test_bf16_for_torch() -> None:
    array = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    assert torch.from_dlpack(_Exported(array, BF16)).tolist() == [1.5, -2.0]


def test_memory_lives_until_the_last_reader() -> None:
    array = np.arange(4, dtype=np.float32).view(_Array)
    alive, before = weakref.ref(array), len(dlpack._OUT)
    exported = _Exported(array, F32)
    tensor = torch.from_dlpack(exported)
    exported.__dlpack__()  # a capsule that nobody takes
    del array, exported
    gc.collect()
    assert alive() is not None
    assert tensor.tolist() == [0, 1, 2, 3]
    del tensor
    gc.collect()
    assert alive() is None
    assert len(dlpack._OUT) == before


@for_each("make", [np.asarray, torch.tensor])
def test_we_read_others(make: Any) -> None:
    source = make([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])[1:]
    found = Borrowed(source.__dlpack__())
    assert found.shape == (2, 2)
    assert found.device[0] == CPU
    assert found.contiguous
    assert found.dtype == str(source.dtype).removeprefix("torch.")
    count = 4 * found.dtype.itemsize
    raw = (dlpack.ctypes.c_ubyte * count).from_address(found.address)
    assert np.frombuffer(raw, found.dtype).tolist() == [3, 4, 5, 6]


def test_strides() -> None:
    square = torch.zeros(4, 4)
    for tensor, contiguous in (
        (square.T, False),
        (square[:, 1:], False),
        (square[1:2].T[:, :0], True),
        (square[:1], True),
        (torch.zeros(3, 1).T, True),
    ):
        assert Borrowed(tensor.__dlpack__()).contiguous == contiguous


def test_a_borrowed_array_is_given_back() -> None:
    array = np.arange(4, dtype=np.float32).view(_Array)
    alive = weakref.ref(array)
    found = Borrowed(_Exported(array, F32).__dlpack__())
    del array
    gc.collect()
    assert alive() is not None
    del found
    gc.collect()
    assert alive() is None


def test_types_without_a_name_are_told() -> None:
    assert Borrowed(torch.zeros(2, dtype=torch.complex32).__dlpack__()).dtype is None
