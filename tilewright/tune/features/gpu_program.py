"""A function scheduled for a GPU as one row of numbers, as long for every function.

The row has columns of the whole function and of its two longest launches (by the estimate of
`gpu_performance.py`); sizes are logarithms. As in `program.py`, the estimate comes first.
"""

from __future__ import annotations

import numpy as np

from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import buffers
from tilewright.target.gpu import GpuTarget
from tilewright.tune.features.columns import log
from tilewright.tune.features.gpu_performance import LaunchWork, launches_of

# Launches that have columns of their own.
DETAILED_LAUNCHES = 2
_NANOSECOND = 1e-9

_WHOLE = ("program.cycles", "program.launches", "program.flops", "program.mma", "program.memory")
LAUNCH_COLUMNS = (
    "blocks",
    "threads",
    "shared",
    "registers",
    "stages",
    "min blocks",
    "fma",
    "mma",
    "calls",
    "memory",
    "l2",
    "wasted",
    "vector",
    "copies",
    "steps",
    "resident",
    "waves",
    "busy",
    "ns",
    "ns.arithmetic",
    "ns.l2",
    "ns.memory",
    "flops per l2 byte",
    "thread work",
)


def gpu_program_features(func: Func, target: GpuTarget) -> np.ndarray:
    """The row of a scheduled function."""
    found = launches_of(func, buffers(func))
    found.sort(key=lambda work: -work.seconds(target))
    seconds = sum(work.seconds(target) for work in found)
    whole = [
        log(seconds / _NANOSECOND),
        float(len(found)),
        log(sum(work.fma_flops for work in found)),
        log(sum(work.mma_flops for work in found)),
        log(sum(work.memory_bytes for work in found)),
    ]
    rows = [_row(work, target) for work in found[:DETAILED_LAUNCHES]]
    rows += [[0.0] * len(LAUNCH_COLUMNS)] * (DETAILED_LAUNCHES - len(rows))
    return np.array([*whole, *(number for row in rows for number in row)])


def gpu_feature_names() -> tuple[str, ...]:
    """The columns by name."""
    places = range(DETAILED_LAUNCHES)
    return (*_WHOLE, *(f"l{place}.{name}" for place in places for name in LAUNCH_COLUMNS))


def _row(work: LaunchWork, target: GpuTarget) -> list[float]:
    """Numbers in the order of `LAUNCH_COLUMNS`."""
    parts = [seconds / _NANOSECOND for seconds in work.parts(target)]
    flops = work.fma_flops + work.mma_flops
    return [
        log(work.blocks),
        log(work.threads),
        log(work.shared),
        work.registers / target.registers_per_thread,
        float(work.stages),
        float(work.least_blocks),
        log(work.fma_flops),
        log(work.mma_flops),
        log(work.calls),
        log(work.memory_bytes),
        log(work.l2_bytes),
        work.wasted,
        log(work.vector),
        log(work.copies),
        log(work.steps),
        log(work.resident(target)),
        log(work.waves(target)),
        work.busy(target),
        log(work.seconds(target) / _NANOSECOND),
        *map(log, parts),
        log(flops / max(1.0, work.l2_bytes)),
        log(flops / max(1.0, work.blocks * work.threads)),
    ]
