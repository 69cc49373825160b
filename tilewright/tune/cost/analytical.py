"""The estimates of `features/performance_model.py` and `gpu_performance.py` as a cost model.

It knows the machine and needs no data. It can judge only spaces of programs, whose features
hold the estimate.
"""

from __future__ import annotations

import numpy as np

from tilewright.core.errors import ConfigError
from tilewright.tune.cost.cost_model import CostModel
from tilewright.tune.features.program import fewest_columns


class AnalyticalCost(CostModel):
    """The roofline of a program on its target: the largest of what each resource has to do.

    It is the first column of every row.
    """

    ready = True

    def fit(
        self, features: np.ndarray, throughputs: np.ndarray, groups: np.ndarray | None = None
    ) -> None:
        """Learn nothing."""

    def predict(self, features: np.ndarray) -> np.ndarray:
        """The estimated throughput, as a logarithm."""
        if features.shape[1] < fewest_columns():
            raise ConfigError(
                "cost.features",
                "the cost model 'analytical' needs features of programs, "
                f"and this space has {features.shape[1]} others",
                help="choose a learning cost model for it, or a space of programs",
            )
        return -features[:, 0]
