"""The base of strategies with a cost model: fitting it, scoring candidates, choosing the batch.

Such a strategy scores many candidates with the model and measures few of them: `explore` gives all
that were scored; a function of `batch_selection.py` picks those to measure.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from heapq import nlargest
from random import Random

import numpy as np

from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.cost.cost_model import CostModel, throughputs
from tilewright.tune.cost.ridge import RidgeCost
from tilewright.tune.space.space import Space
from tilewright.tune.strategy.batch_selection import Pick, diverse, epsilon_greedy
from tilewright.tune.strategy.strategy import Strategy

# The batch is picked from the best candidates that were looked at, so many times its size.
POOL = 8
DEFAULT_PICK = epsilon_greedy(diverse(0.1), 0.05)


class ModelGuided(Strategy):
    """A strategy that explores with a cost model; without one it is given ridge regression."""

    uses_model = True

    def __init__(
        self,
        space: Space,
        rng: Random,
        model: CostModel | None = None,
        pick: Pick = DEFAULT_PICK,
    ) -> None:
        super().__init__(space, rng, model or RidgeCost())
        self.pick = pick
        self._rows: list[np.ndarray] = []
        self._scores: dict[Candidate, float] = {}

    @abstractmethod
    def explore(self) -> Mapping[Candidate, float]:
        """The candidates looked at, with the scores that the model gives them."""

    def suggest(self, n: int) -> Iterable[Candidate]:
        """The batch that `pick` makes of what `explore` found; nothing while nothing is known."""
        assert self.model is not None
        if self.results:
            self._fit()
        elif not self.model.ready:
            return ()
        new = [(c, score) for c, score in self.explore().items() if c not in self.proposed]
        return self.pick(nlargest(POOL * n, new, key=lambda row: row[1]), n, self.rng)

    def observe(self, results: Sequence[Result]) -> None:
        """Keep what was measured, for the next fit."""
        super().observe(results)
        if results:
            self._rows.append(self.space.features([result.candidate for result in results]))

    def scores(self, candidates: Sequence[Candidate]) -> list[float]:
        """What the model makes of each; asked once a round for each candidate."""
        unknown = list(dict.fromkeys(c for c in candidates if c not in self._scores))
        if unknown:
            assert self.model is not None
            predicted = self.model.predict(self.space.features(unknown))
            self._scores.update(zip(unknown, predicted.tolist(), strict=True))
        return [self._scores[candidate] for candidate in candidates]

    def _fit(self) -> None:
        assert self.model is not None
        self._scores.clear()
        seconds = np.array([result.seconds for result in self.results])
        self.model.fit(np.vstack(self._rows), throughputs(seconds))
