from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.errors import ExecutionError
from tilewright.runtime.host_memory import ALIGNMENT, DATA_OFFSET, address, aligned_empty, allocate


@for_each(
    "array",
    [
        np.zeros(3, np.float32),
        np.zeros((2, 0), np.int8),
        np.zeros((), np.bool_),
        np.zeros(4, ml_dtypes.bfloat16),
        np.arange(9)[2:],
        np.frombuffer(b"read-only", np.uint8),
        np.broadcast_to(np.float32(1), (4, 4)),
    ],
    ids=["f32", "empty", "scalar", "bf16", "slice", "read-only", "broadcast"],
)
def test_address(array: np.ndarray) -> None:
    assert address(array) == array.ctypes.data


@for_each("shape", [(), (0,), (3, 5), (1000,)])
@for_each("dtype", [np.float32, np.int8, np.bool_, ml_dtypes.bfloat16])
def test_aligned_empty(shape: tuple[int, ...], dtype: type) -> None:
    array, where = aligned_empty(shape, np.dtype(dtype))
    assert (array.shape, array.dtype) == (shape, np.dtype(dtype))
    assert where == array.ctypes.data
    assert where % ALIGNMENT == 0
    array[...] = 1
    assert array.flags.c_contiguous
    assert array.flags.writeable


def test_where_an_array_keeps_its_address() -> None:
    assert DATA_OFFSET is not None
    for array in (np.zeros(3), np.arange(9)[4:], np.frombuffer(b"text", np.uint8)):
        found = ctypes.c_void_p.from_address(id(array) + DATA_OFFSET).value
        assert found == array.ctypes.data


@for_each("size", [1 << 61, 1 << 64])
def test_memory_that_there_is_not_is_an_error(size: int) -> None:
    with pytest.raises(ExecutionError) as caught:
        allocate(size)
    assert caught.value.code == "run.memory"
