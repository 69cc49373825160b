"""What a CPU core's instructions, caches and threads cost, in cycles: the data of all cost models.

The defaults describe a server core with two FMA units of four cycles, as most x86-64 and Neoverse
cores have; `tilewright doctor --calibrate` replaces some of them by what this machine was measured
to do, for the target `native` alone. A field marked *fitted* is no fact of a machine: it was chosen
for the kernels or models named, and is to be replaced by a formula.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tilewright.core.host.core_rates import CoreRates
from tilewright.core.node import node


@node
class InstructionCycles:
    """Cycles for which a core is busy with one vector instruction of each kind."""

    fma: float = 0.5
    add: float = 0.5
    mul: float = 0.5
    div: float = 8.0
    choice: float = 0.5
    root: float = 8.0
    math: float = 12.0
    cast: float = 0.5
    int: float = 0.5


@node
class TileUnit:
    """A matrix unit: the block of accumulators it holds, and what its instructions take in cycles.

    `step` is one k-tile of a block, operands from L2; `start` clears and stores the accumulators of
    a block. `convert` and `pack` are cycles for each element of the left operand; `call` sets the
    unit up on each thread and releases it.
    """

    rows: int
    columns: int
    depth: int
    step: int
    start: int
    convert: float
    pack: float
    call: int


AMX = TileUnit(
    rows=32, columns=32, depth=32, step=128, start=250, convert=0.25, pack=0.25, call=1000
)
"""Two by two tiles of 16 x 16 x 32."""


@node
class LayoutCosts:
    """Fitted: what convolutions cost with channels first and last, in FMAs of full vectors.

    `vector` is the number of pixels that are computed together. An element costs `transpose` to
    move to the other layout in L2, `pack` to copy in order, `gather` to copy with gaps. An FMA of
    several channels along a line costs `line`, one of a single vector, of filters or of a line,
    `single_vector`; windows whose vectors are not contiguous cost `scattered` times as much.
    """

    vector: int = 8
    transpose: float = 16.0
    pack: float = 2.0
    gather: float = 8.0
    line: float = 1.15
    single_vector: float = 1.5
    scattered: float = 4.0


LAYOUTS = LayoutCosts()

# Fitted: numbers of rows, and lengths of image lines, that a tile must be good at where the number
# is symbolic.
TYPICAL_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 16, 24, 33, 64, 128, 512)
TYPICAL_LINES = (7, 10, 14, 20, 28, 40, 56, 96, 160)


@node
class CpuCosts:
    """Throughput, latency and bandwidth of one core.

    Arithmetic: `fma_units` FMAs a cycle of `fma_latency` cycles each; `gemm_efficiency` is the
    fraction of that peak which a GEMM reaches, `gemm_start_steps` the k-steps that starting and
    storing a tile of it take.

    Bandwidth: bytes a cycle from L2, from a cache further away (L3), and from memory. A `line_fill`
    is a pair for L2, L3 and memory: cycles a cache line in a stream that the prefetcher follows,
    and cycles that each new stream waits. A core waits for at most so many `loads_in_flight`, and
    for a single one from L3 for `l3_latency` cycles; as it copies, it waits for the first lines of
    `streams_in_flight` rows at a time. The prefetcher follows `prefetched_streams` pages that are
    written side by side; in more, each line waits. What the core itself prefetches is read
    `prefetch_bytes` later. A line that all threads pack before they use it moves
    `packed_line_moves` times between caches, one that L2 does not hold `far_packed_line_moves`.
    A calibration keeps these as they are. Other tenants of a host evict its L3 and take half of a
    core's load buffer: 85 or 300 cycles and 72 or 36 loads were measured on one machine, and by the
    worse of them B is packed where reading it in place takes a quarter of the time.

    Threads: `fork_cycles` starts a parallel loop and waits for the last thread; `parallel_grain` is
    the number of inner iterations from which that pays.
    """

    fma_units: int = 2
    fma_latency: int = 4
    gemm_efficiency: float = 0.87
    gemm_start_steps: int = 8
    l2_bytes_per_cycle: float = 32
    l3_bytes_per_cycle: float = 8
    memory_bytes_per_cycle: float = 8
    line_fill: tuple[tuple[float, float], ...] = ((2.0, 11.0), (6.0, 24.0), (12.0, 60.0))
    loads_in_flight: int = 72
    l3_latency: float = 100.0
    streams_in_flight: int = 8
    prefetched_streams: int = 32
    # What a core waits for at a time: the bandwidth of a far cache times its latency.
    prefetch_bytes: int = 2048
    # Read, read for being written, read by the thread that needs it; L2 writes back what it cannot
    # keep, and reads it again.
    packed_line_moves: int = 4
    far_packed_line_moves: int = 6
    instruction_cycles: InstructionCycles = InstructionCycles()
    # A load or store of a vector or of one element; an element of a strided vector.
    move_cycles: float = 0.5
    insert_cycles: float = 1.5
    loop_cycles: float = 2.0
    # The address of a row whose rows are not evenly spaced: two divisions.
    address_cycles: float = 6
    # What the busiest resource does not hide of the others.
    overlap: float = 0.15
    fork_cycles: float = 8000.0
    parallel_grain: int = 32_768
    amx: TileUnit = AMX
    # Fitted: FMAs in flight of a depthwise stencil, on MobileNetV2 and EfficientNet-B0. Latency
    # times units is 8; more hide the start and end of the few taps.
    stencil_chains: int = 14
    # Fitted: cycles a vector of a packed panel that another tile of rows reads once more, and
    # cycles of a scalar whose line was evicted from L1 by others of the same k-step, on ResNet-50.
    panel_reread_cycles: float = 0.3
    evicted_line_cycles: float = 0.35
    # Fitted: products of a recurrent step from which threads pay, on LSTM and GRU.
    recurrence_grain: int = 200_000

    @property
    def fma_chains(self) -> int:
        """Independent accumulators that hide the latency of an FMA."""
        return self.fma_units * self.fma_latency

    def line_fill_beyond_l2(self, in_l3: bool) -> tuple[float, float]:
        """The `line_fill` of what other cores have written, which is never in the L2 of this."""
        _, l3, memory = self.line_fill
        return l3 if in_l3 else memory


BUILTIN = CpuCosts()


def read_costs(fields: Mapping[str, Any]) -> CpuCosts:
    """The costs from the data of `asdict`, perhaps by way of JSON."""
    nested = {
        "line_fill": tuple((cycles, wait) for cycles, wait in fields["line_fill"]),
        "instruction_cycles": InstructionCycles(**fields["instruction_cycles"]),
        "amx": TileUnit(**fields["amx"]),
    }
    return CpuCosts(**{**fields, **nested})


# Bytes of a cache line, of which `line_fill` gives the cycles.
_LINE = 64


def calibrated(rates: CoreRates, base: CpuCosts = BUILTIN) -> CpuCosts:
    """`base` with the fields that were measured; rounded, so that noise does not change kernels."""
    units = max(1, round(rates.fma_per_cycle))
    bandwidths = (rates.l2_bytes_per_cycle, rates.l3_bytes_per_cycle, rates.memory_bytes_per_cycle)
    l2, l3, memory = (_significant(rate) for rate in bandwidths)
    streams = zip((l2, l3, memory), base.line_fill, strict=True)
    busy = replace(base.instruction_cycles, fma=1 / units, add=1 / units, mul=1 / units)
    return replace(
        base,
        fma_units=units,
        fma_latency=max(1, round(rates.fma_latency)),
        l2_bytes_per_cycle=l2,
        l3_bytes_per_cycle=l3,
        memory_bytes_per_cycle=memory,
        line_fill=tuple((_LINE / rate, wait) for rate, (_, wait) in streams),
        instruction_cycles=busy,
        fork_cycles=_significant(rates.fork_cycles),
    )


def _significant(rate: float) -> float:
    """A figure in steps of a quarter of a power of two: measurements of one machine agree."""
    power = 1.0
    while power * 2 <= rate:
        power *= 2
    while power > rate:
        power /= 2
    return max(power / 4, round(rate / power * 4) / 4 * power)
