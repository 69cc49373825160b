from __future__ import annotations

import threading
from collections.abc import Iterator

import llvmlite.binding as llvm
import pytest

from tests.codegen.host.threadpool.native_pool import NativePool
from tilewright.codegen.host.threadpool.pool import CHUNKS, threadpool_ir


@pytest.fixture
def pool() -> Iterator[NativePool]:
    made = NativePool()
    made.set_threads(2)
    yield made
    made.close()


def test_a_slot_is_two_cache_lines() -> None:
    module = llvm.parse_assembly(threadpool_ir("aarch64-unknown-linux-gnu"))
    data = llvm.create_target_data("e-i64:64-n32:64-S128")
    slot, pool = module.get_struct_type("tw.slot"), module.get_struct_type("tw.pool")
    assert data.get_abi_size(slot) == 128
    assert data.get_element_offset(slot, 9) == 64
    assert data.get_element_offset(pool, 4) == 64
    assert data.get_element_offset(pool, 6) == 128


def test_threads_work_at_the_same_time(pool: NativePool) -> None:
    meeting = threading.Barrier(2, timeout=30)
    found: list[int] = []

    def body(begin: int, end: int) -> None:
        meeting.wait()
        found.append(threading.get_native_id())

    pool.parallel(body, 2)
    assert len(set(found)) == 2
    assert threading.get_native_id() in found


@pytest.mark.parametrize("slow", ["worker", "caller"])
def test_chunks_of_a_slow_thread_are_taken_over(pool: NativePool, slow: str) -> None:
    """One thread is stuck in its first chunk until the other has run all the rest."""
    caller = threading.get_native_id()
    chunks = 2 * CHUNKS
    others_done, seen = threading.Event(), threading.Lock()
    by_thread: dict[bool, list[int]] = {True: [], False: []}

    def body(begin: int, end: int) -> None:
        is_slow = (threading.get_native_id() == caller) == (slow == "caller")
        with seen:
            by_thread[is_slow].append(begin)
            if len(by_thread[False]) == chunks - 1:
                others_done.set()
        if is_slow:
            assert others_done.wait(30)

    def until_both_came(begin: int, end: int) -> None:
        meeting.wait()

    # the worker must be awake, or the caller would run everything
    meeting = threading.Barrier(2, timeout=30)
    pool.set_spin(1_000_000)
    pool.parallel(until_both_came, 2)
    for _ in range(5):
        by_thread = {True: [], False: []}
        others_done.clear()
        pool.parallel(body, chunks)
        assert sorted(by_thread[True] + by_thread[False]) == list(range(chunks))
        if by_thread[True]:
            assert len(by_thread[True]) == 1
    pool.set_spin(50)


def test_few_steps_are_not_shared(pool: NativePool) -> None:
    for n, steps, shared in ((8, 10, False), (8, 10**9, True), (0, 10, False), (-3, 10, False)):
        found: list[tuple[int, int]] = []
        pool.parallel_work(lambda begin, end, to=found: to.append((begin, end)), n, steps)
        if n <= 0:
            assert found == []
        elif shared:
            assert len(found) == 8
        else:
            assert found == [(0, 8)]


def test_late_workers_touch_nothing(pool: NativePool) -> None:
    """Jobs shorter than the time in which a worker wakes, each with memory of its own."""
    pool.set_spin(0)
    for _ in range(300):
        assert pool.count(1, 3) == [1] * 3
    pool.set_spin(50)
    for _ in range(300):
        assert pool.count(3, 9) == [3] * 9


@pytest.mark.parametrize("threads", [3, 7, 16])
def test_more_threads_than_processors(pool: NativePool, threads: int) -> None:
    pool.set_threads(threads)
    for n in (1, 2, threads, 10 * threads + 3):
        assert pool.count(100, n) == [100] * n
