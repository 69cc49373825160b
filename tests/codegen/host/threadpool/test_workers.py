from __future__ import annotations

import time

import llvmlite.binding as llvm

from tests.codegen.host.threadpool.native_pool import NativePool
from tilewright.codegen.host.threadpool.pool import threadpool_ir
from tilewright.codegen.host.threadpool.workers import WORKER, WORKERS


def defined(text: str) -> set[str]:
    return {
        line.split("@")[1].split("(")[0] for line in text.splitlines() if line.startswith("define")
    }


def test_everything_is_private_and_used() -> None:
    module = llvm.parse_assembly(threadpool_ir("aarch64-unknown-linux-gnu"))
    text = str(module)
    for name in defined(WORKER + WORKERS):
        assert module.get_function(name).linkage.name == "internal"
        assert text.count(f"@{name}(") + text.count(f"@{name},") >= 2


def test_a_worker_polls_no_longer_than_told() -> None:
    pool = NativePool()
    pool.set_threads(2)
    pool.set_spin(0)
    pool.count(1, 2)
    start = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - start < 0.1
    assert pool.count(100, 7) == [100] * 7
    pool.close()
