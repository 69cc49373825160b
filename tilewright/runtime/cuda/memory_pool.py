"""Memory for results that stay on the GPU, reused once the result is garbage-collected.

New memory of the GPU is dear, and to free it waits for all of its work. What is given back, at
whatever moment and by whichever thread, is only noted here.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.runtime.cuda.driver import Driver

MAX_FREE = 8
"""Free blocks that are kept for later results."""
_ANY_FIT_BYTES = 1 << 16


@dataclass(frozen=True)
class _Block:
    address: int
    size: int
    # whether other streams may still read it
    elsewhere: bool


class Lease:
    """Memory of a pool, which gets it back when this object is garbage-collected."""

    def __init__(self, pool: Pool, block: _Block) -> None:
        self.address, self.size = block.address, block.size
        self.elsewhere = False
        self._pool = pool

    def __del__(self) -> None:
        self._pool.give_back(_Block(self.address, self.size, self.elsewhere))


class Pool:
    """Memory on a GPU. Only returning memory is thread-safe."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._free: list[_Block] = []
        self._closed = False

    def take(self, size: int) -> Lease:
        """Memory of unspecified content, which no stream uses any more."""
        for block in self._free:
            # a small result must not occupy a large block
            if size <= block.size <= max(2 * size, _ANY_FIT_BYTES):
                self._free.remove(block)
                if block.elsewhere:
                    self._driver.synchronize_all()
                return Lease(self, block)
        while len(self._free) > MAX_FREE:
            self._driver.free(self._free.pop(0).address)
        return Lease(self, _Block(self._driver.allocate(size), max(size, 1), False))

    def give_back(self, block: _Block) -> None:
        """Return memory to the pool."""
        if self._closed:
            self._driver.enter()
            self._driver.free(block.address)
        else:
            self._free.append(block)

    def close(self) -> None:
        """Free what is not in use, and the rest as soon as it is returned."""
        self._closed = True
        while self._free:
            self._driver.free(self._free.pop().address)
