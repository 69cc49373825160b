"""What a parallel region costs: empty, with work to share, and with workers gone to sleep.

    python -m benchmarks.fork_join [--threads 2,4] [--rounds 200]

Each figure is the least of many short rounds, since whatever else runs only makes it longer.
"""

from __future__ import annotations

import argparse
import time

from tests.codegen.host.threadpool.native_pool import NativePool

TIMES = 200
WORK = 16384


def polling(pool: NativePool, n: int, rounds: int) -> float:
    """Microseconds of a job of `n` iterations, one addition each, while the workers poll."""
    pool.count(TIMES, n)
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        pool.count(TIMES, n)
        best = min(best, time.perf_counter() - start)
    return best / TIMES * 1e6


def asleep(pool: NativePool, threads: int, rounds: int) -> float:
    """Microseconds of the same with workers to be woken, the call from Python included."""
    best = float("inf")
    for _ in range(rounds):
        time.sleep(0.001)
        start = time.perf_counter()
        pool.count(1, threads)
        best = min(best, time.perf_counter() - start)
    return best * 1e6


def main() -> None:
    """Print one line a number of threads."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    pool = NativePool()
    pool.set_threads(1)
    alone = polling(pool, WORK, options.rounds)
    for threads in map(int, options.threads.split(",")):
        pool.set_threads(threads)
        nothing = polling(pool, threads, options.rounds)
        shared = polling(pool, WORK, options.rounds)
        woken = asleep(pool, threads, options.rounds)
        print(
            f"{threads} threads: empty {nothing:.2f} us; {alone:.1f} us of work in {shared:.1f}, "
            f"{shared - alone / threads:.1f} more than its share; asleep {woken:.1f} us"
        )
    pool.close()


if __name__ == "__main__":
    main()
