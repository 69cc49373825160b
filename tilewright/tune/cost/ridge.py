"""Ridge regression of the logarithm of the throughput on features, their squares and products."""

from __future__ import annotations

import numpy as np

from tilewright.tune.cost.cost_model import CostModel, group_rows

# What failed has no throughput; it counts as this fraction of the best.
FAILED = 1e-2
# With more features than this there are too many products: squares alone must do.
MAX_PRODUCT_FEATURES = 48


class RidgeCost(CostModel):
    """Linear regression on products of two features, kept small by a penalty."""

    def __init__(self, seed: int = 0, penalty: float = 1.0) -> None:
        super().__init__(seed)
        self.penalty = penalty
        self._weights: np.ndarray | None = None

    def fit(
        self, features: np.ndarray, throughputs: np.ndarray, groups: np.ndarray | None = None
    ) -> None:
        """Solve for the weights; a group's own level is left out, as only orders matter."""
        self._mean = features.mean(axis=0)
        spread = features.std(axis=0)
        self._scale = np.where(spread > 0, spread, 1.0)
        rows = self._terms(features)
        target = np.log(np.maximum(throughputs, FAILED))
        for group in group_rows(groups, len(features)):
            target[group] -= target[group].mean()
        # In the smaller of the two forms: at the start there are fewer rows than terms.
        count, terms = rows.shape
        if count < terms:
            kernel = rows @ rows.T + self.penalty * np.eye(count)
            self._weights = rows.T @ np.linalg.solve(kernel, target)
        else:
            normal = rows.T @ rows + self.penalty * np.eye(terms)
            self._weights = np.linalg.solve(normal, rows.T @ target)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """The logarithm of the throughput; all equal before anything was learnt."""
        if self._weights is None:
            return np.zeros(len(features))
        scores: np.ndarray = self._terms(features) @ self._weights
        return scores

    def _terms(self, features: np.ndarray) -> np.ndarray:
        unit = (features - self._mean) / self._scale
        if unit.shape[1] > MAX_PRODUCT_FEATURES:
            return np.hstack([unit, unit**2])
        left, right = np.triu_indices(unit.shape[1])
        return np.hstack([unit, unit[:, left] * unit[:, right]])
