"""The baseline: a model that knows nothing."""

from __future__ import annotations

import numpy as np

from tilewright.tune.cost.cost_model import CostModel


class RandomCost(CostModel):
    """Random scores: what a strategy is worth without a model."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._rng = np.random.default_rng(seed)

    def fit(
        self, features: np.ndarray, throughputs: np.ndarray, groups: np.ndarray | None = None
    ) -> None:
        """Learn nothing."""

    def predict(self, features: np.ndarray) -> np.ndarray:
        """A random score a row."""
        return self._rng.random(len(features))
