"""A task's schedules measured once, as a tabular space: see `tune/benchmark/record_space.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.driver.tuning.extract_tasks import TuningTask
from tilewright.driver.tuning.task_files import write_task
from tilewright.target.cpu import CpuTarget
from tilewright.tune.benchmark.record_space import record
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.features.program import feature_names
from tilewright.tune.measure.measurer import Measurer
from tilewright.tune.space.subspace import largest_subspace
from tilewright.tune.space.table import SCHEDULE_SPACES
from tilewright.tune.space.tabular import About, TabularSpace
from tilewright.tune.target_key import target_text


def record_task(
    name: str,
    task: TuningTask,
    target: CpuTarget,
    measurer: Measurer,
    limit: int,
    threads: int = 0,
    show: Callable[[str], None] = lambda text: None,
    kind: str = "constructed",
) -> TabularSpace:
    """Measure at most `limit` candidates of a task, of a space of schedules of this kind."""
    scheduled = task.scheduled
    make = SCHEDULE_SPACES.get(kind)
    space = make(scheduled.func, scheduled.constants, target)
    job = write_task(measurer.folder / f"task-{name}", task, target, threads)
    show(f"{name}: choosing candidates")
    part = largest_subspace(space, limit)
    about = About(
        task.about.flops, task.about.kind, scheduled.text, target_text(target), feature_names()
    )

    def measure(candidates: Sequence[Candidate]) -> list[Result]:
        return measurer.measure(job, [(c, space.trace(c)) for c in candidates])

    return record(name, part, measure, space.trace, about, show)
