"""The interface of all strategies: `propose` candidates to measure, `observe` what came out.

A strategy says in `suggest` what it would like to measure next. `propose` makes a batch of it: new
and legal candidates only, filled up at random where there are too few, so that a strategy never
proposes twice and ends only when its space does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from random import Random

from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.cost.cost_model import CostModel
from tilewright.tune.space.space import Space
from tilewright.tune.space.variation import enumerate_all, sample

# Draws in a row that may give nothing new before the space is gone through in order.
MAX_STALE_DRAWS = 50


class Strategy(ABC):
    """Searches one space."""

    # Whether the cost model it is given makes a difference.
    uses_model = False

    def __init__(self, space: Space, rng: Random, model: CostModel | None = None) -> None:
        self.space = space
        self.rng = rng
        self.model = model
        self.results: list[Result] = []
        self.proposed: set[Candidate] = set()
        self._rest: Iterator[Candidate] | None = None

    @abstractmethod
    def suggest(self, n: int) -> Iterable[Candidate]:
        """What to measure next, the best first; any number, and some may be known."""

    def propose(self, n: int) -> list[Candidate]:
        """Up to `n` candidates that were never proposed; fewer only if there are no more."""
        batch: list[Candidate] = []
        for candidate in self.suggest(n):
            if len(batch) < n:
                self._take(candidate, batch)
        while len(batch) < n and self._fill(batch):
            pass
        return batch

    def observe(self, results: Sequence[Result]) -> None:
        """Learn what measuring gave; also of candidates from earlier runs."""
        self.proposed.update(result.candidate for result in results)
        self.results.extend(results)

    def best(self, n: int) -> list[Candidate]:
        """The `n` fastest so far, without those that failed."""
        fine = [result for result in self.results if not result.failure]
        return [r.candidate for r in sorted(fine, key=lambda r: r.seconds)[:n]]

    def fresh(self) -> Candidate | None:
        """A random candidate that was never proposed; None once there are no more."""
        if self._rest is None:
            for _ in range(MAX_STALE_DRAWS):
                found = sample(self.space, self.rng)
                if found is not None and found not in self.proposed:
                    return found
            self._rest = enumerate_all(self.space)
        return next((c for c in self._rest if c not in self.proposed), None)

    def _take(self, candidate: Candidate, batch: list[Candidate]) -> None:
        """Add a candidate to the batch if it is new and legal; either way never look again."""
        if candidate not in self.proposed:
            self.proposed.add(candidate)
            if self.space.legal(candidate):
                batch.append(candidate)

    def _fill(self, batch: list[Candidate]) -> bool:
        candidate = self.fresh()
        if candidate is not None:
            self._take(candidate, batch)
        return candidate is not None
