"""The loop of tuning: propose, measure, observe, until the trials are spent or the space is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.strategy.strategy import Strategy
from tilewright.tune.task_scheduler.task_scheduler import TaskScheduler

Measure: TypeAlias = Callable[[Sequence[Candidate]], Sequence[Result]]


def search(
    strategy: Strategy,
    measure: Measure,
    trials: int,
    batch: int = 16,
    stop: Callable[[Result], bool] = lambda result: False,
) -> list[Result]:
    """Everything measured, in order; ends early after a batch with a result that `stop` accepts."""
    results: list[Result] = []
    while len(results) < trials:
        new = _round(strategy, measure, min(batch, trials - len(results)))
        results.extend(new)
        if not new or any(map(stop, new)):
            break
    return results


def search_tasks(
    scheduler: TaskScheduler,
    tasks: Sequence[tuple[Strategy, Measure]],
    trials: int,
    batch: int = 16,
) -> list[list[Result]]:
    """Everything measured for each task; the scheduler says which of them has the next batch."""
    results: list[list[Result]] = [[] for _ in tasks]
    left = trials
    while left > 0 and (number := scheduler.next_task()) is not None:
        wanted = min(batch, left)
        new = _round(*tasks[number], wanted)
        results[number].extend(new)
        left -= len(new)
        best = min((result.seconds for result in new), default=scheduler.tasks[number].now)
        scheduler.observe(number, best, finished=len(new) < wanted)
    return results


def _round(strategy: Strategy, measure: Measure, n: int) -> Sequence[Result]:
    candidates = strategy.propose(n)
    results = measure(candidates) if candidates else ()
    strategy.observe(results)
    return results
