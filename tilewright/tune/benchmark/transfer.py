"""The gain of pre-training: spaces of programs searched with a pre-trained model, and without.

A seed divides the spaces into two halves. A model learns from one half, is written to a file as a
user would have it, and the other half is searched with it; then the other way round, so that every
space is searched by a model that has never seen it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tilewright.core.errors import ConfigError
from tilewright.tune.benchmark.accuracy import program_task
from tilewright.tune.benchmark.compare_methods import (
    BenchmarkSettings,
    LeaderboardRow,
    compare_methods,
)
from tilewright.tune.cost.pretrained import pretrain, write_model
from tilewright.tune.method import SearchMethod

WITHOUT, WITH = "lightgbm", "pretrained"


def halves(spaces: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """The spaces divided into two halves at random."""
    if len(spaces) < 2:
        raise ConfigError("lab.too-few", "transfer needs at least two spaces of programs")
    dealt = sorted(spaces)
    Random(seed).shuffle(dealt)
    return dealt[::2], dealt[1::2]


def transfer(
    spaces: Sequence[str],
    strategy: str,
    settings: BenchmarkSettings,
    show: Callable[[str], None] = lambda text: None,
) -> list[LeaderboardRow]:
    """For each space two rows, with pre-training and without, the better first."""
    one, two = halves(spaces, settings.first_seed)
    leaderboard: list[LeaderboardRow] = []
    with TemporaryDirectory() as folder:
        for number, (known, unseen) in enumerate(((one, two), (two, one))):
            file = Path(folder) / f"{number}.txt"
            write_model(file, pretrain([program_task(name) for name in known]))
            methods = [SearchMethod(strategy, WITHOUT), SearchMethod(strategy, f"{WITH}:{file}")]
            leaderboard += compare_methods(unseen, methods, settings, show)
    return [_named(row) for row in leaderboard]


def _named(row: LeaderboardRow) -> LeaderboardRow:
    """The file is gone: the method goes by the name of the model."""
    method = replace(row.method, cost_model=row.method.cost_model.partition(":")[0])
    return replace(row, method=method)


def saved(leaderboard: Sequence[LeaderboardRow]) -> dict[str, float]:
    """For each space, the trials to t95 with pre-training relative to those without.

    Means over the seeds; a run that never got there counts as all of its trials.
    """
    trials: dict[tuple[str, str], float] = {
        (one.space, one.method.cost_model): one.mean_t95 for one in leaderboard
    }
    spaces = dict.fromkeys(one.space for one in leaderboard)
    return {space: trials[space, WITH] / trials[space, WITHOUT] for space in spaces}
