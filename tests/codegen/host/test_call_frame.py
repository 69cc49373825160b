from __future__ import annotations

import ctypes

import numpy as np
import pytest

from tests.runtime.fake_model import arguments, expected, objects
from tilewright.runtime.cpu.native_module import NativeModule


@pytest.mark.parametrize("offset", [0, 16])
@pytest.mark.parametrize("profiled", [False, True])
def test_a_frame_is_read_as_described(offset: int, profiled: bool) -> None:
    module = NativeModule(objects())
    x, z = arguments(5)
    y, s = np.empty((5, 3), np.float32), np.empty(10, np.float32)
    arena, times = np.empty(64, np.uint8), np.zeros(2, np.int64)
    weights, dims = np.array([1, 2, 3], np.float32), np.array([5])
    holders = [np.zeros(4, np.int64) for _ in range(2)]
    for holder, array in zip(holders, (x, z), strict=True):
        holder[offset // 8] = array.ctypes.data
    frame = np.array(
        [
            *(2, offset, dims.ctypes.data, arena.ctypes.data, weights.ctypes.data),
            times.ctypes.data if profiled else 0,
            *(0, 0, holders[0].ctypes.data, holders[1].ctypes.data, y.ctypes.data, s.ctypes.data),
        ]
    )
    assert module.functions["tw_call"](ctypes.c_void_p(frame.ctypes.data)) == 0
    np.testing.assert_array_equal(y, x + weights)
    np.testing.assert_array_equal(s, expected(x, z)[1])
    assert times.tolist() == ([1000, 3000] if profiled else [0, 0])
    module.close()
