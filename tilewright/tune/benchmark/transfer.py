"""What pre-training is worth: spaces of programs searched with what others taught, and without.

The spaces are dealt into two halves by a seed. A model learns from one half, is written to a file
as a user would have it, and the other half is searched with it; then the other way round, so that
every space is searched by a model that has never seen it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from tilewright.core.errors import ConfigError
from tilewright.tune.benchmark.accuracy import program_task
from tilewright.tune.benchmark.compare_methods import Settings, Standing, compete
from tilewright.tune.cost.pretrained import pretrain, write_model
from tilewright.tune.method import Method

WITHOUT, WITH = "lightgbm", "pretrained"


def halves(spaces: Sequence[str], seed: int) -> tuple[list[str], list[str]]:
    """The spaces dealt into two halves."""
    if len(spaces) < 2:
        raise ConfigError("lab.too-few", "transfer needs at least two spaces of programs")
    dealt = sorted(spaces)
    Random(seed).shuffle(dealt)
    return dealt[::2], dealt[1::2]


def transfer(
    spaces: Sequence[str],
    strategy: str,
    settings: Settings,
    show: Callable[[str], None] = lambda text: None,
) -> list[Standing]:
    """For each space two standings, with pre-training and without, the better first."""
    one, two = halves(spaces, settings.first_seed)
    standings: list[Standing] = []
    with TemporaryDirectory() as folder:
        for number, (known, unseen) in enumerate(((one, two), (two, one))):
            file = Path(folder) / f"{number}.txt"
            write_model(file, pretrain([program_task(name) for name in known]))
            methods = [Method(strategy, WITHOUT), Method(strategy, f"{WITH}:{file}")]
            standings += compete(unseen, methods, settings, show)
    return [_named(standing) for standing in standings]


def _named(standing: Standing) -> Standing:
    """The file is gone: the method goes by the name of the model."""
    method = replace(standing.method, cost_model=standing.method.cost_model.partition(":")[0])
    return replace(standing, method=method)


def saved(standings: Sequence[Standing]) -> dict[str, float]:
    """For each space, the trials to t95 with pre-training as a share of those without.

    Means over the seeds, a run that never came there counting as all of its trials.
    """
    trials: dict[tuple[str, str], float] = {
        (one.space, one.method.cost_model): one.mean_t95 for one in standings
    }
    spaces = dict.fromkeys(one.space for one in standings)
    return {space: trials[space, WITH] / trials[space, WITHOUT] for space in spaces}
