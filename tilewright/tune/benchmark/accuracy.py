"""How well cost models order programs that they have not seen: Kendall's tau on measured spaces.

Each space of programs is evaluated twice. *Within*: a model learns from some of its candidates and
orders the rest. *Across*: a model learns from all other spaces and orders this one, which transfer
depends on. A model that needs no data gives the same result both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tilewright.core.errors import ConfigError
from tilewright.core.node import node
from tilewright.tune.benchmark.metrics import kendall
from tilewright.tune.cost.cost_model import CostModel, throughputs
from tilewright.tune.cost.pretrained import Measured
from tilewright.tune.cost.table import make_cost_model
from tilewright.tune.space.table import tabular_space


@node
class Accuracy:
    """Kendall's tau of a cost model on a space; `across` is missing where there is no other."""

    space: str
    cost_model: str
    within: float
    across: float | None


def accuracies(
    spaces: Sequence[str], cost_models: Sequence[str], train: int, seeds: Sequence[int]
) -> list[Accuracy]:
    """All cost models on all spaces; `train` candidates are learnt from within a space."""
    tasks = {name: program_task(name) for name in spaces}
    return [
        Accuracy(
            space,
            model,
            float(np.mean([_within(model, tasks[space], train, seed) for seed in seeds])),
            _across(model, space, tasks),
        )
        for space in spaces
        for model in cost_models
    ]


def program_task(space: str) -> Measured:
    """Features and seconds of a measured space of programs."""
    found = tabular_space(space)
    if not found.about.columns:
        raise ConfigError(
            "lab.no-programs",
            f"{space} is no space of programs: it has no features that others have too",
            help="name spaces that `tilewright lab record` wrote",
        )
    return found.measured()


def _within(name: str, task: Measured, train: int, seed: int) -> float:
    features, seconds = task
    order = np.random.default_rng(seed).permutation(len(seconds))
    known, unseen = order[:train], order[train:]
    model = make_cost_model(name, seed)
    model.fit(features[known], throughputs(seconds[known]))
    return kendall(model.predict(features[unseen]), seconds[unseen])


def _across(name: str, space: str, tasks: dict[str, Measured]) -> float | None:
    others = [task for other, task in tasks.items() if other != space]
    if not others:
        return None
    features, seconds = tasks[space]
    return kendall(fitted(lambda: make_cost_model(name), others).predict(features), seconds)


def fitted(make: Callable[[], CostModel], tasks: Sequence[Measured]) -> CostModel:
    """A model that has learnt from several tasks together."""
    groups = np.repeat(np.arange(len(tasks)), [len(seconds) for _, seconds in tasks])
    model = make()
    seconds = np.concatenate([task[1] for task in tasks])
    model.fit(np.vstack([task[0] for task in tasks]), throughputs(seconds, groups), groups)
    return model
