"""What threads share: whether a nest is worth it, and how many of its loops they run through."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.cpu import BUILTIN

# Fewer steps than this are not worth waking another thread for.
PARALLEL_WORK = BUILTIN.parallel_grain
# So many times more or fewer steps, and it is clear whether they are.
DOUBTFUL = 8
# With so many tasks for each core it does not matter whether they come out even.
MANY = 16


def load_imbalance(tasks: int, cores: int) -> float:
    """How many times as long equal tasks take as they would with all cores busy to the end."""
    return 1.0 if tasks >= MANY * cores else -(-tasks // cores) * cores / tasks


def is_parallel(sch: Schedule, name: str, steps: int, least: int = PARALLEL_WORK) -> bool:
    """Whether threads share the nest of a block that takes so many steps."""
    doubtful = least // DOUBTFUL <= steps <= least * DOUBTFUL
    worth = steps >= least
    return sch.choose(f"{name}.parallel", worth, lambda: (False, True) if doubtful else (worth,))


def fuse_parallel(sch: Schedule, name: str, loops: Sequence[str]) -> None:
    """Let threads share the outermost of these loops, by default all of them as one."""
    count = sch.choose(f"{name}.loops", len(loops), lambda: range(1, len(loops) + 1))
    sch.parallel(sch.fuse(*loops[:count]) if count > 1 else loops[0])
