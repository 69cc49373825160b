"""Going through a space in order."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from random import Random

from tilewright.tune.candidate import Candidate
from tilewright.tune.cost.cost_model import CostModel
from tilewright.tune.space.space import Space
from tilewright.tune.space.variation import enumerate_all
from tilewright.tune.strategy.strategy import Strategy


class GridSearch(Strategy):
    """All candidates in the order of their decisions."""

    def __init__(self, space: Space, rng: Random, model: CostModel | None = None) -> None:
        super().__init__(space, rng, model)
        self._all = enumerate_all(space)

    def suggest(self, n: int) -> Iterable[Candidate]:
        """The next ones that are new."""
        return islice((c for c in self._all if c not in self.proposed), n)
