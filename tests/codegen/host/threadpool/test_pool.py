from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from tests.codegen.host.threadpool.native_pool import NativePool
from tests.for_each import for_each
from tilewright.codegen.host.threadpool.pool import CHUNKS, MAX_THREADS, threadpool_ir
from tilewright.core.errors import UnsupportedError

ROOT = Path(__file__).parents[4]


@pytest.fixture
def pool() -> Iterator[NativePool]:
    made = NativePool()
    yield made
    made.close()


def chunks(pool: NativePool, n: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    pool.parallel(lambda begin, end: found.append((begin, end)), n)
    return sorted(found)


@pytest.mark.parametrize("threads", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 1000])
def test_chunks_are_contiguous_and_even(pool: NativePool, threads: int, n: int) -> None:
    pool.set_threads(threads)
    count = min(CHUNKS * min(threads, n), n) if threads > 1 else min(n, 1)
    expected = [(t * n // count, (t + 1) * n // count) for t in range(count)]
    assert chunks(pool, n) == (expected if n > 1 else expected[:n])


def test_negative_count_is_nothing(pool: NativePool) -> None:
    pool.set_threads(2)
    assert chunks(pool, -5) == []


def test_a_nested_job_runs_inline(pool: NativePool) -> None:
    pool.set_threads(2)
    inner: list[tuple[int, int, bool]] = []

    def outer(begin: int, end: int) -> None:
        me = threading.get_native_id()
        pool.parallel(lambda b, e: inner.append((b, e, threading.get_native_id() == me)), 10)

    pool.parallel(outer, 2)
    assert inner == [(0, 10, True)] * 2


@pytest.mark.parametrize(("threads", "times"), [(1, 20000), (2, 20000), (4, 500)])
def test_many_jobs_visit_everything_once(pool: NativePool, threads: int, times: int) -> None:
    pool.set_threads(threads)
    assert pool.count(times, 37) == [times] * 37


def test_callers_in_several_threads(pool: NativePool) -> None:
    pool.set_threads(2)
    results: list[list[int]] = []
    callers = [
        threading.Thread(target=lambda: results.append(pool.count(2000, 11))) for _ in range(4)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert results == [[2000] * 11] * 4


def test_sleeping_workers_wake(pool: NativePool) -> None:
    pool.set_threads(2)
    for _ in range(10):
        assert pool.count(1, 5) == [1] * 5
        time.sleep(0.002)


def test_number_of_threads(pool: NativePool) -> None:
    assert pool.get_threads() == min(len(os.sched_getaffinity(0)), MAX_THREADS)
    for asked, got in [(1, 1), (5, 5), (10**6, MAX_THREADS)]:
        pool.set_threads(asked)
        assert pool.get_threads() == got
    pool.set_threads(0)
    assert pool.get_threads() == min(len(os.sched_getaffinity(0)), MAX_THREADS)


def native_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def test_workers_come_late_and_end(pool: NativePool) -> None:
    before = native_threads()
    pool.set_threads(4)
    assert native_threads() == before
    pool.count(1, 100)
    assert native_threads() == before + 3
    pool.set_threads(2)
    assert native_threads() == before
    pool.count(1, 100)
    assert native_threads() == before + 1
    pool.shutdown()
    assert native_threads() == before
    pool.shutdown()
    assert pool.count(3, 100) == [3] * 100


def test_no_more_workers_than_iterations(pool: NativePool) -> None:
    before = native_threads()
    pool.set_threads(8)
    pool.count(1, 3)
    assert native_threads() == before + 2
    assert pool.count(5, 20) == [5] * 20
    assert native_threads() == before + 7


def run_script(text: str, *args: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", text, *args],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


FORK = """
import os, sys
import llvmlite.binding as llvm
from tests.codegen.host.threadpool.native_pool import NativePool
from tilewright.codegen.host.threadpool.pool import threadpool_ir
text = threadpool_ir(llvm.get_default_triple())
if sys.argv[1] == "old-kernel":
    assert "i32 18)" in text
    text = text.replace("i32 18)", "i32 9999)")
pool = NativePool(text)
pool.set_threads(3)
assert pool.count(50, 9) == [50] * 9
children = []
for generation in range(3):
    child = os.fork()
    if child == 0:
        assert len(os.listdir("/proc/self/task")) == 1
        assert pool.count(50, 9) == [50] * 9
        assert len(os.listdir("/proc/self/task")) == 3
        grandchild = os.fork()
        assert pool.count(50, 9) == [50] * 9
        pool.close()
        if grandchild:
            assert os.waitpid(grandchild, 0)[1] == 0
        os._exit(0)
    assert pool.count(50, 9) == [50] * 9
    assert os.waitpid(child, 0)[1] == 0
pool.close()
"""


@pytest.mark.parametrize("kernel", ["new-kernel", "old-kernel"])
def test_a_forked_child_has_its_own_workers(kernel: str) -> None:
    run_script(FORK, kernel)


FEW_THREADS = """
import resource
from tests.codegen.host.threadpool.native_pool import NativePool
pool = NativePool()
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
limit = used + (40 << 20)  # room for the stacks of a few threads
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
pool.set_threads(64)
assert pool.count(20, 100) == [20] * 100
assert 1 <= pool.get_threads() < 64
pool.close()
"""


def test_makes_do_with_the_threads_it_gets() -> None:
    run_script(FEW_THREADS)


@pytest.mark.parametrize("triple", ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"])
def test_compiles_for_each_target(triple: str) -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(threadpool_ir(triple))
    module.verify()
    machine = llvm.Target.from_triple(triple).create_target_machine(reloc="pic")
    assert machine.emit_object(module)


@for_each("triple", ["riscv64-unknown-linux-gnu", "arm64-apple-darwin"])
def test_unsupported_target(triple: str) -> None:
    with pytest.raises(UnsupportedError, match="Linux on aarch64, x86_64"):
        threadpool_ir(triple)
