from __future__ import annotations

import ctypes

import numpy as np

from tilewright.runtime.cuda.status_words import StatusWords


class _Driver:
    """Pinned memory that is the host's."""

    def __init__(self) -> None:
        self.memory = np.full(4, -1, np.int64)
        self.freed = 0

    def allocate_pinned(self, size: int) -> int:
        assert size == self.memory.nbytes
        return int(self.memory.ctypes.data)

    def free_pinned(self, address: int) -> None:
        self.freed += 1


def test_words_that_a_gpu_has_written_are_taken_once() -> None:
    driver = _Driver()
    status = StatusWords(driver, 32)
    assert status.take() is None
    driver.memory[:] = 0, 0, 41, 40
    assert status.take() == [0, 0, 41, 40]
    assert status.take() is None
    driver.memory[1] = 9  # a size whose index is yet to come
    assert status.take() is None
    assert ctypes.c_int64.from_address(status.address + 8).value == 9
    status.close()
    status.close()
    assert driver.freed == 1


def test_models_without_checks_have_none() -> None:
    status = StatusWords(_Driver(), 0)
    assert status.take() is None
    assert status.address == 0
    status.close()
