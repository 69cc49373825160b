"""Simulated annealing on the cost model (AutoTVM): many chains, kept alive between rounds.

In each round the chains take some steps while the temperature falls to zero; a step to a worse
candidate is taken with probability exp(-loss / temperature), the loss being relative to how much
the scores of the chains differ. The batch is picked from all candidates that were visited.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from random import Random

import numpy as np

from tilewright.tune.candidate import Candidate
from tilewright.tune.cost.cost_model import CostModel
from tilewright.tune.space.space import Space
from tilewright.tune.space.variation import mutate, sample
from tilewright.tune.strategy.model_guided import ModelGuided


class Annealing(ModelGuided):
    """Parallel chains of simulated annealing, the cost model being the energy."""

    def __init__(
        self,
        space: Space,
        rng: Random,
        model: CostModel | None = None,
        chains: int = 32,
        steps: int = 24,
    ) -> None:
        super().__init__(space, rng, model)
        self.steps = steps
        self.chains = [c for c in (sample(space, rng) for _ in range(chains)) if c is not None]

    def explore(self) -> Mapping[Candidate, float]:
        """Walk all chains on from where they are."""
        energies = self.scores(self.chains)
        visited = dict(zip(self.chains, energies, strict=True))
        spread = float(np.std(energies)) or 1.0
        for step in range(self.steps):
            temperature = spread * (1 - step / self.steps)
            moved = [mutate(self.space, c, self.rng) or c for c in self.chains]
            for chain, (there, score) in enumerate(zip(moved, self.scores(moved), strict=True)):
                visited[there] = score
                if self._accepts(score - energies[chain], temperature):
                    self.chains[chain], energies[chain] = there, score
        return visited

    def _accepts(self, gain: float, temperature: float) -> bool:
        return gain >= 0 or self.rng.random() < math.exp(gain / temperature)
