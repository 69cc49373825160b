"""A result that stays on the GPU: for torch, CuPy and others through DLPack, or as NumPy's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tilewright.core.dtypes import DType
from tilewright.runtime.cuda.dlpack import CPU, CUDA, capsule
from tilewright.runtime.cuda.driver import Driver
from tilewright.runtime.cuda.memory_pool import Lease
from tilewright.runtime.host_memory import address

LEGACY_STREAM = 1
"""The stream that DLPack means where none is named, which torch and CuPy use at first."""
_NO_WAITING = -1


class DeviceArray:
    """An array on the GPU, whose memory is its own as long as anybody reads it.

    `torch.from_dlpack(array)` and `cupy.from_dlpack(array)` are tensors in the same memory.
    """

    def __init__(
        self,
        driver: Driver,
        memory: Lease,
        shape: tuple[int, ...],
        dtype: DType,
        stream: int | None = None,
    ) -> None:
        """`stream` is that in which it is being computed; None where that is done."""
        self._driver = driver
        self._memory = memory
        self._stream = stream
        self._type = dtype
        self.shape = shape
        self.dtype: np.dtype = dtype.numpy

    @property
    def nbytes(self) -> int:
        """Its bytes."""
        return math.prod(self.shape) * self.dtype.itemsize

    def narrowed(self, shape: tuple[int, ...]) -> DeviceArray:
        """The first elements as an array of another shape, in the same memory."""
        return DeviceArray(self._driver, self._memory, shape, self._type, self._stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self._driver.number

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """The array for a reader whose work is in `stream`, which waits until it is computed."""
        if dl_device is not None and tuple(dl_device) == (CPU, 0) and copy is not False:
            return self.numpy().__dlpack__()
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError(f"an array on the GPU cannot be given as {dl_device}, copy={copy}")
        reader = LEGACY_STREAM if stream is None else stream
        if reader != self._stream:
            self._memory.elsewhere = True
            if reader != _NO_WAITING and self._stream is not None:
                self._driver.enter()
                self._driver.wait_stream(reader, self._stream)
        where = self.__dlpack_device__()
        return capsule(self._memory.address, self.shape, self._type, where, self._memory)

    def numpy(self) -> np.ndarray:
        """A copy in the memory of the host."""
        result = np.empty(self.shape, self.dtype)
        if result.nbytes:
            self._driver.enter()
            stream = self._stream or LEGACY_STREAM
            place = self._memory.address
            self._driver.download(address(result), place, result.nbytes, stream)
            self._driver.synchronize(stream)
        return result

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError("an array on the GPU can only be copied to the host")
        return self.numpy().astype(dtype or self.dtype, copy=False)

    def __repr__(self) -> str:
        return f"<DeviceArray {self._type}[{', '.join(map(str, self.shape))}] on the GPU>"
