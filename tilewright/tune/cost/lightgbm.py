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
from tilewright.tune.cost.cost_model import CostModel, group_rows

# Ranking needs integers for relevance: throughput relative to the best, in as many steps.
RELEVANCE_GRADES = 31
# With fewer measurements there is nothing to split.
MIN_MEASUREMENTS = 8
# Of a tree: few, because there are few measurements. To the optimum of convolution-a100 annealing
# takes 131 trials with 31 and 114 with 7, by the mean of 100 seeds.
LEAVES = 7


class LightGbmCost(CostModel):
    """LightGBM's trees with the lambdarank objective."""

    def __init__(self, seed: int = 0, rounds: int = 60, **parameters: object) -> None:
        super().__init__(seed)
        self.rounds = rounds
        self.parameters = parameters
        self._lightgbm = _package()
        self._booster: Any = None

    def fit(
        self, features: np.ndarray, throughputs: np.ndarray, groups: np.ndarray | None = None
    ) -> None:
        """Train anew on everything; the groups are the queries whose rows are ranked."""
        if len(features) < MIN_MEASUREMENTS:
            return
        rows = group_rows(groups, len(features))
        order, sizes = np.concatenate(rows), [len(group) for group in rows]
        known = self.known(features[order])
        data = self._lightgbm.Dataset(
            features[order],
            label=np.rint(throughputs[order] * RELEVANCE_GRADES).astype(np.int32),
            group=sizes,
            init_score=known if known.any() else None,
        )
        self._booster = self._lightgbm.train(self._parameters(max(sizes)), data, self.rounds)

    def predict(self, features: np.ndarray) -> np.ndarray:
        """The ranking score; all equal before anything was learnt."""
        known = self.known(features)
        if self._booster is None or not len(features):
            return known
        scores: np.ndarray = known + self._booster.predict(features, num_threads=1)
        return scores

    def known(self, features: np.ndarray) -> np.ndarray:
        """The scores before anything is learnt, to which what is learnt is added."""
        return np.zeros(len(features))

    def as_text(self) -> str:
        """What was learnt, in LightGBM's own format."""
        assert self._booster is not None, "nothing was learnt"
        text: str = self._booster.model_to_string()
        return text

    def read_text(self, text: str) -> None:
        """Know what another model has learnt; `ValueError` if the text is none of LightGBM's."""
        try:
            self._booster = self._lightgbm.Booster(model_str=text)
        except self._lightgbm.basic.LightGBMError as error:
            raise ValueError(str(error)) from error

    def _parameters(self, count: int) -> dict[str, object]:
        return {
            "objective": "lambdarank",
            "label_gain": list(range(RELEVANCE_GRADES + 1)),
            "lambdarank_truncation_level": count,
            "learning_rate": 0.1,
            "num_leaves": LEAVES,
            "min_data_in_leaf": 3,
            "min_data_in_bin": 1,
            "seed": self.seed,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "verbosity": -1,
            **self.parameters,
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
