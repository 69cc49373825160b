"""The interface of all cost models: rows of features in, scores out, higher for faster.

What is learnt may come from several tasks at once: each row belongs to a group, only rows of one
group are compared, and a throughput is relative to the best of its group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np


class CostModel(ABC):
    """Learns from measured candidates to rank others."""

    # Whether the scores mean something before anything was learnt of this task.
    ready = False
    # Whether it is made from a file, `NAME:FILE`.
    takes_file = False

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    @abstractmethod
    def fit(
        self, features: np.ndarray, throughputs: np.ndarray, groups: np.ndarray | None = None
    ) -> None:
        """Learn from all that was measured so far, forgetting what was learnt before.

        `groups` numbers the task of each row; without it all are of one.
        """

    @abstractmethod
    def predict(self, features: np.ndarray) -> np.ndarray:
        """A score a row; only their order means something."""

    def rank(self, features: np.ndarray) -> np.ndarray:
        """The rows' numbers, the most promising first; equal ones stay in order."""
        return np.argsort(-self.predict(features), kind="stable")


def throughputs(seconds: np.ndarray, groups: np.ndarray | None = None) -> np.ndarray:
    """How fast each is: 1 for the fastest of its group, 0 for what failed, whatever the unit."""
    found = np.zeros(len(seconds))
    for rows in group_rows(groups, len(seconds)):
        finite = seconds[rows][np.isfinite(seconds[rows])]
        if finite.size:
            found[rows] = finite.min() / seconds[rows]
    return found


def group_rows(groups: np.ndarray | None, count: int) -> list[np.ndarray]:
    """The numbers of the rows of each group, in the order of the groups' numbers."""
    if groups is None:
        return [np.arange(count)] if count else []
    return [np.flatnonzero(groups == group) for group in np.unique(groups)]
