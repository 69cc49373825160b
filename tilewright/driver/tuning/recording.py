"""A task's schedules measured once, as a space that can be replayed: see `tune/lab/record.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.driver.tuning.extract import TuningTask
from tilewright.driver.tuning.task_files import write_task
from tilewright.target.cpu import Target
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.features.program import feature_names
from tilewright.tune.lab.record import record
from tilewright.tune.machine import target_text
from tilewright.tune.measure.measurer import Measurer
from tilewright.tune.space.narrowed import narrowed
from tilewright.tune.space.replay import About, ReplaySpace
from tilewright.tune.space.table import SCHEDULE_SPACES


def record_task(
    name: str,
    task: TuningTask,
    target: Target,
    measurer: Measurer,
    limit: int,
    threads: int = 0,
    show: Callable[[str], None] = lambda text: None,
    kind: str = "constructed",
) -> ReplaySpace:
    """Measure at most `limit` candidates of a task, of a space of schedules of this kind."""
    scheduled = task.scheduled
    make = SCHEDULE_SPACES.get(kind)
    space = make(scheduled.func, scheduled.constants, target)
    job = write_task(measurer.folder / f"task-{name}", task, target, threads)
    show(f"{name}: choosing candidates")
    part = narrowed(space, limit)
    about = About(
        task.about.flops, task.about.kind, scheduled.text, target_text(target), feature_names()
    )

    def measure(candidates: Sequence[Candidate]) -> list[Result]:
        return measurer.measure(job, [(c, space.trace(c)) for c in candidates])

    return record(name, part, measure, space.trace, about, show)
