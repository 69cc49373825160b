"""Transfer: what was learnt from other tasks, and what this task adds to it (AutoTVM).

    score = analytical(features) + global(features) + local(features)

The global model ranks programs of many tasks, whose features mean the same everywhere: it comes
from a file, and says where the analytical model is wrong. The local one is trained on what is
measured of this task, starting from the scores of both, which choose alone while there is nothing.

The file is a line that says which columns the model knows, then LightGBM's own text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tilewright.core.errors import ConfigError
from tilewright.tune.cost.cost_model import throughputs
from tilewright.tune.cost.lightgbm import LightGbmCost
from tilewright.tune.cost.residual import ResidualCost
from tilewright.tune.features.program import feature_names

FORMAT = 1
# Few and small trees with few columns each: tasks are few, and columns that distinguish tasks are
# not those that distinguish fast from slow.
ROUNDS = 40
TREE_PARAMETERS = {"num_leaves": 8, "min_data_in_leaf": 10, "feature_fraction": 0.3}

# Of one task: a row of features a candidate, and seconds (infinite for what failed).
Measured = tuple[np.ndarray, np.ndarray]


class PretrainedCost(LightGbmCost):
    """A model of other tasks from a file, `pretrained:FILE`, and LightGBM for the rest."""

    ready = True
    takes_file = True

    def __init__(self, seed: int = 0, file: str = "") -> None:
        super().__init__(seed)
        self._global = read_model(Path(file)) if file else _no_file()

    def known(self, features: np.ndarray) -> np.ndarray:
        """What the global model says; it knows the first columns, a space may append others."""
        return self._global.predict(features[:, : len(feature_names())])


def pretrain(tasks: Iterable[Measured], seed: int = 0) -> ResidualCost:
    """One model of all tasks, each a group of its own."""
    rows, seconds = zip(*tasks, strict=True)
    groups = np.repeat(np.arange(len(rows)), [len(task) for task in rows])
    model = ResidualCost(seed, ROUNDS, **TREE_PARAMETERS)
    model.fit(
        np.vstack(rows)[:, : len(feature_names())],
        throughputs(np.concatenate(seconds), groups),
        groups,
    )
    return model


def write_model(path: Path, model: ResidualCost) -> None:
    """Write what a model has learnt to a file."""
    header = json.dumps({"cost model": FORMAT, "columns": columns_hash()})
    path.write_text(f"{header}\n{model.as_text()}")


def read_model(path: Path) -> ResidualCost:
    """The model in a file."""
    try:
        first, _, text = path.read_text().partition("\n")
        header = json.loads(first)
        if header["cost model"] != FORMAT or header["columns"] != columns_hash():
            raise ValueError("it was learnt from other features than this version's")
        model = ResidualCost()
        model.read_text(text)
    except (KeyError, OSError, TypeError, ValueError) as error:
        raise ConfigError(
            "cost.file",
            f"no cost model can be read from {path}: {error}",
            help="train one with `tilewright lab pretrain`",
        ) from error
    return model


def columns_hash() -> str:
    """A short text that differs when features do."""
    return hashlib.sha256("\n".join(feature_names()).encode()).hexdigest()[:16]


def _no_file() -> ResidualCost:
    raise ConfigError(
        "cost.no-file",
        "the cost model 'pretrained' needs the file that it comes from",
        help="write pretrained:FILE",
    )
