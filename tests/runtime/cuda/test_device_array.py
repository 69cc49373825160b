from __future__ import annotations

import ctypes
import gc

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.core.dtypes import F32
from tilewright.runtime.cuda.device_array import LEGACY_STREAM, DeviceArray
from tilewright.runtime.cuda.dlpack import CPU, CUDA, Borrowed
from tilewright.runtime.cuda.memory_pool import Pool


class _Device:
    """Memory of the host; notes which stream waits for which."""

    number = 2

    def __init__(self) -> None:
        self.live: dict[int, np.ndarray] = {}
        self.followed: list[tuple[int, int]] = []
        self.used: list[int] = []

    def enter(self) -> None:
        """Nothing to enter."""

    def allocate(self, size: int) -> int:
        memory = np.arange(size // 4, dtype=np.float32)
        place = memory.__array_interface__["data"][0]
        self.live[place] = memory
        return place

    def free(self, address: int) -> None:
        del self.live[address]

    def download(self, to: int, source: int, size: int, stream: int) -> None:
        self.used.append(stream)
        ctypes.memmove(to, source, size)

    def synchronize(self, stream: int) -> None:
        self.used.append(stream)

    def wait_stream(self, stream: int, other: int) -> None:
        self.followed.append((stream, other))


def _made(stream: int | None) -> tuple[DeviceArray, _Device]:
    device = _Device()
    return DeviceArray(device, Pool(device).take(24), (2, 3), F32, stream), device


@for_each(
    ("computed", "reader", "waits", "elsewhere"),
    [
        (None, None, [], True),
        (None, 9, [], True),
        (LEGACY_STREAM, None, [], False),
        (9, 9, [], False),
        (9, None, [(LEGACY_STREAM, 9)], True),
        (9, 7, [(7, 9)], True),
        (9, -1, [], True),
    ],
)
def test_readers_wait_for_what_is_computed(
    computed: int | None, reader: int | None, waits: list[tuple[int, int]], elsewhere: bool
) -> None:
    array, device = _made(computed)
    found = Borrowed(array.__dlpack__(stream=reader, max_version=(1, 0)))
    assert found.device == array.__dlpack_device__() == (CUDA, 2)
    assert (found.address, found.shape, found.dtype) == (*device.live, (2, 3), np.float32)
    assert device.followed == waits
    assert array._memory.elsewhere == elsewhere


@for_each("stream", [None, 9])
def test_for_the_host(stream: int | None) -> None:
    array, device = _made(stream)
    expected = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(array.numpy(), expected)
    np.testing.assert_array_equal(np.asarray(array, np.float64), expected)
    assert set(device.used) == {stream or LEGACY_STREAM}
    assert Borrowed(array.__dlpack__(dl_device=(CPU, 0))).device[0] == CPU
    assert np.from_dlpack(array, device="cpu").tolist() == expected.tolist()
    assert repr(array) == "<DeviceArray f32[2, 3] on the GPU>"
    assert array.narrowed((2, 2)).numpy().tolist() == [[0, 1], [2, 3]]


def test_what_cannot_be_done_is_refused() -> None:
    array, _ = _made(None)
    for given in ({"dl_device": (CUDA, 0)}, {"copy": True}, {"dl_device": (CPU, 0), "copy": False}):
        with pytest.raises(BufferError):
            array.__dlpack__(**given)
    with pytest.raises(ValueError, match="copied"):
        np.array(array, copy=False)


def test_memory_lives_as_long_as_anybody_reads_it() -> None:
    array, device = _made(None)
    reader = Borrowed(array.__dlpack__())
    pool = array._memory._pool
    del array
    gc.collect()
    pool.close()
    assert len(device.live) == 1
    del reader
    gc.collect()
    assert device.live == {}
