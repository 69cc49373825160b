"""The loop of tuning: propose, measure, observe, until the trials are spent or the space is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.strategy.strategy import Strategy

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
        candidates = strategy.propose(min(batch, trials - len(results)))
        if not candidates:
            break
        new = measure(candidates)
        strategy.observe(new)
        results.extend(new)
        if any(map(stop, new)):
            break
    return results
