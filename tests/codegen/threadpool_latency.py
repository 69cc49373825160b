"""How long an empty fork-join takes; run by hand: python -m tests.codegen.threadpool_latency."""

from __future__ import annotations

import time

from tests.codegen.native_pool import NativePool

TIMES = 10000


def main() -> None:
    pool = NativePool()
    for threads in (1, 2, 4):
        pool.set_threads(threads)
        pool.count(TIMES // 10, threads)
        rounds = []
        for _ in range(7):
            start = time.perf_counter()
            pool.count(TIMES, threads)
            rounds.append((time.perf_counter() - start) / TIMES * 1e6)
        print(f"{threads} threads: {min(rounds):.2f} us (median {sorted(rounds)[3]:.2f})")
    pool.close()


if __name__ == "__main__":
    main()
