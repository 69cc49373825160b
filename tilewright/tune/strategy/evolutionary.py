"""Evolutionary search on the cost model (Ansor, MetaSchedule), which learns from measurements.

A population of the fastest measured candidates and of random ones goes through some generations;
parents are drawn by rank, children come from mutation or crossover. Half of the batch is picked
from everything the model has scored. The other half are offspring of the fastest measured
candidates, one of each: they improve even where a model with few measurements is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from random import Random

from tilewright.tune.candidate import Candidate
from tilewright.tune.cost.cost_model import CostModel
from tilewright.tune.space.space import Space
from tilewright.tune.space.variation import crossover, mutate, sample
from tilewright.tune.strategy.model_guided import ModelGuided

# Of so many changes to a measured candidate, the model chooses the one that is measured.
CHANGES = 8


class Evolutionary(ModelGuided):
    """Evolution of the fastest candidates, ranked by the cost model."""

    def __init__(
        self,
        space: Space,
        rng: Random,
        model: CostModel | None = None,
        population: int = 64,
        generations: int = 4,
        measured: float = 0.5,
        mutation: float = 0.7,
    ) -> None:
        super().__init__(space, rng, model)
        self.population = population
        self.generations = generations
        self.measured = measured
        self.mutation = mutation

    def suggest(self, n: int) -> Iterable[Candidate]:
        """What evolution found, and heirs of what was measured."""
        fastest = self.best(n // 2)  # none yet in the first round of a pre-trained model
        found = list(super().suggest(n - len(fastest)))
        return [*found, *self._heirs(fastest, found)]

    def explore(self) -> Mapping[Candidate, float]:
        """All generations with their scores."""
        people = self._first()
        seen = dict(zip(people, self.scores(people), strict=True))
        for _ in range(self.generations):
            parents = sorted(seen, key=lambda c: seen[c], reverse=True)[: self.population]
            born = [self._child(parents) for _ in range(self.population)]
            children = [child for child in born if child is not None]
            seen.update(zip(children, self.scores(children), strict=True))
        return seen

    def _first(self) -> list[Candidate]:
        best = self.best(int(self.population * self.measured))
        drawn = (sample(self.space, self.rng) for _ in range(self.population - len(best)))
        return best + [candidate for candidate in drawn if candidate is not None]

    def _heirs(self, fastest: Iterable[Candidate], known: Collection[Candidate]) -> list[Candidate]:
        """Of each of the fastest the most promising change that is new."""
        heirs: list[Candidate] = []
        for candidate in fastest:
            changed = [mutate(self.space, candidate, self.rng) for _ in range(CHANGES)]
            new = [c for c in changed if c is not None and c not in self.proposed]
            new = [c for c in new if c not in known and c not in heirs]
            if new:
                scores = self.scores(new)
                heirs.append(new[scores.index(max(scores))])
        return heirs

    def _child(self, parents: list[Candidate]) -> Candidate | None:
        one = self._parent(parents)
        if self.rng.random() < self.mutation:
            return mutate(self.space, one, self.rng)
        return crossover(self.space, one, self._parent(parents), self.rng)

    def _parent(self, parents: list[Candidate]) -> Candidate:
        """The better of two; parents come in order of their scores."""
        return parents[min(self.rng.randrange(len(parents)) for _ in range(2))]
