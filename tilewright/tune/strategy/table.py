"""The strategies by name."""

from __future__ import annotations

from tilewright.core.registry import Registry
from tilewright.tune.strategy.strategy import Strategy

STRATEGIES: Registry[type[Strategy]] = Registry(
    "strategy",
    {
        "random": "tilewright.tune.strategy.random:RandomSearch",
        "grid": "tilewright.tune.strategy.grid:GridSearch",
        "genetic": "tilewright.tune.strategy.genetic:GeneticSearch",
        "annealing": "tilewright.tune.strategy.annealing:Annealing",
        "evolutionary": "tilewright.tune.strategy.evolutionary:Evolutionary",
    },
)
