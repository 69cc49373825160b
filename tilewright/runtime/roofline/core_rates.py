"""Measuring one core: its clock, the throughput and latency of an FMA, its bandwidths.

The clock is read from dependent integer operations, which take one cycle each on every core that
is compiled for; all other rates are per cycle, so that they hold at any clock.
"""

from __future__ import annotations

import numpy as np

from tilewright.core.host.core_rates import CoreRates
from tilewright.runtime.roofline.kernels import (
    CHAINS,
    CYCLES,
    FMA_CHAIN,
    Kernel,
    compile_roof_kernels,
    host_instructions,
)
from tilewright.runtime.roofline.measure import SUM_STEPS, best_seconds, measure_levels

FMA = "f32"
ROUNDS = 3


def measure_core(fork_seconds: float) -> CoreRates:
    """The rates of one core; a parallel loop was measured to take `fork_seconds` to start."""
    instruction = host_instructions()[FMA]
    kernels, engine = compile_roof_kernels([instruction])
    names = ("cycles", f"multiply_add_{FMA}", FMA_CHAIN)
    try:
        rounds = [[_step_seconds(kernels[name]) for name in names] for _ in range(ROUNDS)]
        levels = [[x.bytes_per_second for x in measure_levels(kernels["read"], 1)] for _ in rounds]
    finally:
        engine.close()
    # the best of each: whatever was slower met another process
    cycles, sums, chain = (min(seconds) for seconds in zip(*rounds, strict=True))
    rates = [max(found) for found in zip(*levels, strict=True)]
    frequency = CYCLES / cycles
    l1, l2, l3, memory = (rate / frequency for rate in (*rates[:2], *rates[-2:]))
    throughput, latency = CHAINS / (sums * frequency), chain * frequency
    fork = fork_seconds * frequency
    return CoreRates(frequency, throughput, latency, l1, l2, l3, memory, fork)


def _step_seconds(kernel: Kernel) -> float:
    """Seconds of one step of a kernel that loops in registers."""
    data = np.zeros(CHAINS * 64, np.uint8)
    return best_seconds(kernel, [(SUM_STEPS, data.ctypes.data)]) / SUM_STEPS
