"""Boosted trees that start from the analytical estimate, and learn where it is wrong.

With few measurements this orders programs better than trees that must find everything out, and with
none at all it is the estimate.
"""

from __future__ import annotations

import numpy as np

from tilewright.tune.cost.analytical import AnalyticalCost
from tilewright.tune.cost.lightgbm import LightGbmCost

# What twice the time is worth in scores, beside trees whose votes are a tenth each at most.
WEIGHT = 2.0


class ResidualCost(LightGbmCost):
    """LightGBM on top of the analytical model, for spaces of programs."""

    ready = True

    def known(self, features: np.ndarray) -> np.ndarray:
        """The estimate."""
        return WEIGHT * AnalyticalCost().predict(features)
