"""What one core of this machine was measured to do: the content of a calibration."""

from __future__ import annotations

from tilewright.core.node import node


@node
class CoreRates:
    """Rates of one core: its clock in Hz, all others per cycle of it.

    `fma_latency` is in cycles, bandwidths are of reads, `fork_cycles` is what starting a parallel
    loop on all threads and waiting for the last of them takes.
    """

    frequency: float
    fma_per_cycle: float
    fma_latency: float
    l1_bytes_per_cycle: float
    l2_bytes_per_cycle: float
    l3_bytes_per_cycle: float
    memory_bytes_per_cycle: float
    fork_cycles: float
