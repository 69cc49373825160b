"""The cost models by name."""

from __future__ import annotations

from tilewright.core.registry import Registry
from tilewright.tune.cost.cost_model import CostModel

COST_MODELS: Registry[type[CostModel]] = Registry(
    "cost model",
    {
        "random": "tilewright.tune.cost.random:RandomCost",
        "ridge": "tilewright.tune.cost.ridge:RidgeCost",
        "lightgbm": "tilewright.tune.cost.lightgbm:LightGbmCost",
    },
)
