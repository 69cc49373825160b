from __future__ import annotations

import gc

from tilewright.runtime.cuda.memory_pool import MAX_FREE, Pool


class _Device:
    """Counts; addresses are never used twice."""

    def __init__(self) -> None:
        self.live: dict[int, int] = {}
        self.made = 0
        self.waited = 0

    def enter(self) -> None:
        """Nothing to enter."""

    def allocate(self, size: int) -> int:
        self.made += 1
        self.live[self.made << 20] = size
        return self.made << 20

    def free(self, address: int) -> None:
        del self.live[address]

    def synchronize_all(self) -> None:
        self.waited += 1


def test_memory_is_used_again_once_nobody_holds_it() -> None:
    device = _Device()
    pool = Pool(device)
    one = pool.take(100)
    two = pool.take(100)
    assert one.address != two.address
    first = one.address
    del one
    gc.collect()
    assert pool.take(90).address == first
    assert device.waited == 0


def test_other_streams_are_waited_for() -> None:
    device = _Device()
    pool = Pool(device)
    lease = pool.take(100)
    lease.elsewhere = True
    del lease
    gc.collect()
    lease = pool.take(100)
    assert (device.made, device.waited) == (1, 1)
    assert not lease.elsewhere


def test_small_results_do_not_hold_large_blocks() -> None:
    device = _Device()
    pool = Pool(device)
    pool.take(1 << 30)
    assert pool.take(1 << 20).size == 1 << 20
    assert device.made == 2


def test_what_nobody_asks_for_again_is_freed() -> None:
    device = _Device()
    pool = Pool(device)
    held = [pool.take(n << 20) for n in range(1, 40, 3)]
    count = len(held)
    held.clear()
    gc.collect()
    assert len(device.live) == count
    pool.take(1 << 30)
    assert len(device.live) == MAX_FREE + 1


def test_results_outlive_the_pool() -> None:
    device = _Device()
    pool = Pool(device)
    held, _ = pool.take(8), pool.take(8)
    del _
    gc.collect()
    pool.close()
    assert list(device.live) == [held.address]
    del held
    gc.collect()
    assert device.live == {}
