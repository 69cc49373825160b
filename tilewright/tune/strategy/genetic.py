"""A genetic algorithm on measured times alone: the fastest so far are parents of the next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from random import Random

from tilewright.tune.candidate import Candidate
from tilewright.tune.cost.cost_model import CostModel
from tilewright.tune.space.space import Space
from tilewright.tune.space.variation import crossover, mutate
from tilewright.tune.strategy.strategy import Strategy


class GeneticSearch(Strategy):
    """Crossover and mutation of the fastest candidates measured so far."""

    def __init__(
        self,
        space: Space,
        rng: Random,
        model: CostModel | None = None,
        population: int = 16,
        mutation: float = 0.6,
    ) -> None:
        super().__init__(space, rng, model)
        self.population = population
        self.mutation = mutation

    def suggest(self, n: int) -> Iterable[Candidate]:
        """Children of the population; nothing until there is one."""
        parents = self.best(self.population)
        return self._children(parents, 4 * n) if len(parents) == self.population else ()

    def _children(self, parents: list[Candidate], count: int) -> Iterator[Candidate]:
        for _ in range(count):
            one, two = self._parent(parents), self._parent(parents)
            child = crossover(self.space, one, two, self.rng)
            if child is not None and (child in (one, two) or self.rng.random() < self.mutation):
                child = mutate(self.space, child, self.rng)
            if child is not None:
                yield child

    def _parent(self, parents: list[Candidate]) -> Candidate:
        """The better of two; parents come in order."""
        return parents[min(self.rng.randrange(len(parents)) for _ in range(2))]
