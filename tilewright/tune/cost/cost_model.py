"""The interface of all cost models: rows of features in, scores out, higher for faster."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class CostModel(ABC):
    """Learns from measured candidates to tell fast ones from slow ones."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @abstractmethod
    def fit(self, features: np.ndarray, throughputs: np.ndarray) -> None:
        """Learn from all that was measured so far, forgetting what was learnt before."""

    @abstractmethod
    def predict(self, features: np.ndarray) -> np.ndarray:
        """A score a row; only their order means something."""

    def rank(self, features: np.ndarray) -> np.ndarray:
        """The rows' numbers, the most promising first; equal ones stay in order."""
        return np.argsort(-self.predict(features), kind="stable")


def throughputs(seconds: np.ndarray) -> np.ndarray:
    """How fast each is: 1 for the fastest, 0 for what failed, whatever the unit and the task."""
    finite = seconds[np.isfinite(seconds)]
    if not finite.size:
        return np.zeros_like(seconds)
    return finite.min() / seconds
