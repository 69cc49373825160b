"""Measuring the roofline with the kernels of `kernels.py`, the best of many short repeats.

What each core has of its own (arithmetic, its caches) is measured on one and counted for every
thread; shared resources (the last-level cache, memory) are measured on all threads at once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence

import numpy as np

from tilewright.core.host.cache_sizes import cache_sizes
from tilewright.runtime.roofline.kernels import (
    CHAINS,
    READ_UNROLL,
    Instruction,
    Kernel,
    compile_roof_kernels,
    host_instructions,
    lanes,
)
from tilewright.runtime.roofline.roofline import Level, Roofline

REPEATS = 12
SUM_STEPS = 300_000  # about a millisecond: short, so that some repeat meets no other process
READ_BYTES = 1 << 25  # that one thread reads in a repeat, from however small an array
MEMORY_BYTES = 1 << 27  # all arrays together, where they must exceed the caches
CLOCK_STEPS = 2000

# Assumed where the system does not report them: bytes for each core, the last level shared.
_CACHES = {1: 32 << 10, 2: 512 << 10, 3: 8 << 20}


def measure_roofline(threads: int) -> Roofline:
    """The roofline at a number of threads."""
    instructions = host_instructions()
    kernels, engine = compile_roof_kernels(instructions.values())
    try:
        rates = {name: threads * _sums(kernels, one) for name, one in instructions.items()}
        levels = tuple(measure_levels(kernels["read"], threads))
        clock = best_seconds(kernels["clock"], [(CLOCK_STEPS,)]) / CLOCK_STEPS * 1e9
    finally:
        engine.close()
    return Roofline(threads, rates, levels, clock)


def _sums(kernels: dict[str, Kernel], one: Instruction) -> float:
    """Operations a second of accumulators in registers."""
    data = np.zeros(CHAINS * 64, np.uint8)
    seconds = best_seconds(kernels[f"multiply_add_{one.element}"], [(SUM_STEPS, data.ctypes.data)])
    return one.operations * CHAINS * SUM_STEPS / seconds


def measure_levels(kernel: Kernel, threads: int) -> Iterator[Level]:
    """Reads from each level; every thread has an array of its own."""
    sizes = {**_CACHES, **cache_sizes()}
    *own, last = sorted(sizes)
    for level in own:
        rate = threads * _read_rate(kernel, 1, sizes[level] // 2)
        yield Level(f"L{level}", sizes[level] * threads, rate)
    shared = _read_rate(kernel, threads, sizes[last] // 2 // threads)
    yield Level(f"L{last}", sizes[last], shared)
    outside = max(MEMORY_BYTES, 4 * sizes[last]) // threads
    yield Level("memory", float("inf"), _read_rate(kernel, threads, outside))


def _read_rate(kernel: Kernel, threads: int, size: int) -> float:
    """Bytes a second that all threads read together, each from an array of `size` bytes."""
    step = READ_UNROLL * lanes()
    count = max(size // 4 // step, 1) * step
    times = max(1, READ_BYTES // (4 * count))
    arrays = [np.ones(count, np.float32) for _ in range(threads)]
    sums = np.zeros((threads, step), np.float32)
    calls = [
        (count, times, x.ctypes.data, out.ctypes.data) for x, out in zip(arrays, sums, strict=True)
    ]
    return 4 * count * times * threads / best_seconds(kernel, calls)


def best_seconds(kernel: Kernel, calls: Sequence[tuple[int, ...]]) -> float:
    """The least seconds that the calls take at once, one thread a call."""
    return min(_at_once(kernel, calls) for _ in range(REPEATS))


def _at_once(kernel: Kernel, calls: Sequence[tuple[int, ...]]) -> float:
    gate = threading.Barrier(len(calls))
    ends: list[tuple[float, float]] = []

    def body(arguments: tuple[int, ...]) -> None:
        gate.wait()
        start = time.perf_counter()
        kernel(*arguments)  # without Python's lock
        ends.append((start, time.perf_counter()))

    threads = [threading.Thread(target=body, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return max(end for _, end in ends) - min(start for start, _ in ends)
