"""A search method: a strategy with its cost model, `evolutionary+lightgbm`."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from tilewright.core.errors import ConfigError
from tilewright.core.node import node
from tilewright.tune.cost.table import cost_model_kind, make_cost_model
from tilewright.tune.space.space import Space
from tilewright.tune.strategy.strategy import Strategy
from tilewright.tune.strategy.table import STRATEGIES


@node
class SearchMethod:
    """Names of a strategy and of a cost model; a strategy that uses none has none.

    For several tasks there is a task scheduler too.
    """

    strategy: str
    cost_model: str = ""
    task_scheduler: str = ""

    def __str__(self) -> str:
        text = f"{self.strategy}+{self.cost_model}" if self.cost_model else self.strategy
        return f"{text}, {self.task_scheduler}" if self.task_scheduler else text

    def start(self, space: Space, seed: int) -> Strategy:
        """The strategy ready to search, everything random in it coming from `seed`."""
        # Spelled out, so that no two methods draw the same numbers, wherever a model's file lies.
        alone = SearchMethod(self.strategy, self.cost_model.partition(":")[0])
        rng = Random(f"{space.name} {alone} {seed}")
        model = make_cost_model(self.cost_model, seed) if self.cost_model else None
        return STRATEGIES.get(self.strategy)(space, rng, model)


def methods(strategies: Sequence[str], cost_models: Sequence[str]) -> list[SearchMethod]:
    """Every strategy with every cost model, if it uses one."""
    models = {name: cost_model_kind(name) for name in cost_models}
    found: list[SearchMethod] = []
    for name in dict.fromkeys(strategies):
        uses_model = STRATEGIES.get(name).uses_model
        found += (
            [SearchMethod(name, model) for model in models] if uses_model else [SearchMethod(name)]
        )
    if not found:
        raise ConfigError(
            "lab.nothing",
            "there is nothing to compare",
            help="name strategies, and cost models if all of the strategies use one",
        )
    for name in {method.cost_model for method in found} - {""}:
        make_cost_model(name)  # one that cannot be made is an error before hours are spent
    return found
