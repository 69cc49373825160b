"""Parallel loops: whether a nest has enough work for threads, and which loops are fused."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.cpu import BUILTIN

# Nests with fewer operations run on one thread.
PARALLEL_WORK = BUILTIN.parallel_grain
# Within this factor of the grain, a search may decide either way.
SEARCHED_GRAIN_FACTOR = 8
# With so many tasks for each core, load imbalance is negligible.
BALANCED_TASKS_PER_CORE = 16


def load_imbalance(tasks: int, cores: int) -> float:
    """The time of equal tasks over that with all cores busy to the end."""
    return 1.0 if tasks >= BALANCED_TASKS_PER_CORE * cores else -(-tasks // cores) * cores / tasks


def is_parallel(sch: Schedule, name: str, steps: int, least: int = PARALLEL_WORK) -> bool:
    """Whether the nest of a block that executes so many `steps` runs in parallel."""
    doubtful = least // SEARCHED_GRAIN_FACTOR <= steps <= least * SEARCHED_GRAIN_FACTOR
    worth = steps >= least
    return sch.choose(f"{name}.parallel", worth, lambda: (False, True) if doubtful else (worth,))


def fuse_parallel(sch: Schedule, name: str, loops: Sequence[str]) -> str:
    """Run the outermost of these loops in parallel, by default all of them, fused; the loop."""
    count = sch.choose(f"{name}.loops", len(loops), lambda: range(1, len(loops) + 1))
    shared = sch.fuse(*loops[:count]) if count > 1 else loops[0]
    sch.parallel(shared)
    return shared
