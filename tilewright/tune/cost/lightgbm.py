"""Gradient-boosted trees trained to rank: pairs of candidates in the right order (AutoTVM, Ansor).

Needs the package lightgbm, which is imported when a model is made. One thread and LightGBM's
deterministic mode: the same measurements and the same seed give the same model.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from tilewright.core.errors import ConfigError
from tilewright.tune.cost.cost_model import CostModel

# Ranking wants whole numbers for relevance: shares of the best throughput in as many steps.
GRADES = 31
# With fewer measurements there is nothing to split.
FEWEST = 8


class LightGbmCost(CostModel):
    """LightGBM's trees with the lambdarank objective."""

    def __init__(self, seed: int = 0, rounds: int = 60) -> None:
        super().__init__(seed)
        self.rounds = rounds
        self._lightgbm = _package()
        self._booster: Any = None

    def fit(self, features: np.ndarray, throughputs: np.ndarray) -> None:
        """Train anew on everything."""
        if len(features) < FEWEST:
            return
        grades = np.rint(throughputs * GRADES).astype(np.int32)
        data = self._lightgbm.Dataset(features, label=grades, group=[len(features)])
        self._booster = self._lightgbm.train(self._parameters(len(features)), data, self.rounds)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """The ranking score; all equal before anything was learnt."""
        if self._booster is None or not len(features):
            return np.zeros(len(features))
        return np.asarray(self._booster.predict(features, num_threads=1))

    def _parameters(self, count: int) -> dict[str, object]:
        return {
            "objective": "lambdarank",
            "label_gain": list(range(GRADES + 1)),
            "lambdarank_truncation_level": count,
            "learning_rate": 0.1,
            "num_leaves": 31,
            "min_data_in_leaf": 3,
            "min_data_in_bin": 1,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbosity": -1,
        }


def _package() -> ModuleType:
    try:
        return import_module("lightgbm")
    except (ImportError, OSError) as error:  # its library may lack one of the system
        raise ConfigError(
            "cost.missing-package",
            f"the cost model 'lightgbm' cannot be loaded: {error}",
            help="pip install 'tilewright[tune]', or choose the cost model ridge",
        ) from error
