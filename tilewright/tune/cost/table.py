"""The cost models by name; `NAME:FILE` names one that knows something from a file."""

from __future__ import annotations

from tilewright.core.errors import ConfigError
from tilewright.core.registry import Registry
from tilewright.tune.cost.cost_model import CostModel

COST_MODELS: Registry[type[CostModel]] = Registry(
    "cost model",
    {
        "random": "tilewright.tune.cost.random:RandomCost",
        "analytical": "tilewright.tune.cost.analytical:AnalyticalCost",
        "ridge": "tilewright.tune.cost.ridge:RidgeCost",
        "lightgbm": "tilewright.tune.cost.lightgbm:LightGbmCost",
        "residual": "tilewright.tune.cost.residual:ResidualCost",
        "pretrained": "tilewright.tune.cost.pretrained:PretrainedCost",
    },
)


def make_cost_model(name: str, seed: int = 0) -> CostModel:
    """The cost model called `name`, everything random in it coming from `seed`."""
    kind, _, file = name.partition(":")
    found = cost_model_kind(name)
    if not file:
        return found(seed)
    if not found.takes_file:
        raise ConfigError(
            "cost.takes-no-file",
            f"the cost model {kind!r} comes from no file",
            help=f"write {kind}",
        )
    return found(seed, file)  # type: ignore[call-arg]


def cost_model_kind(name: str) -> type[CostModel]:
    """The class that `name` means, whatever its file."""
    return COST_MODELS.get(name.partition(":")[0])
