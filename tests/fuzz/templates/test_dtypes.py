from __future__ import annotations

import random

import numpy as np

from tilewright.fuzz.differential_check import check_case
from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.templates.dtypes import cast, quantized


def _partial_model(seed: int, array: np.ndarray) -> tuple[PartialModel, str]:
    d = PartialModel(random.Random(seed), {"": 25}, lambda case: None)
    return d, d.give(array, constant=False)


def test_casts_reach_types_of_few_bits() -> None:
    found = set()
    for seed in range(60):
        d, x = _partial_model(seed, np.array([1.0, 0.5, 3.0], np.float32))
        found |= {d.values[name].dtype.name for name in cast(d, x)}
    assert found >= {"int4", "float8_e5m2", "bool"}


def test_nan_does_not_become_an_integer() -> None:
    for seed in range(20):
        d, x = _partial_model(seed, np.array([np.nan, -1.0], np.float32))
        assert all(d.values[name].dtype.kind not in "iu" for name in cast(d, x))


def test_quantized_values_come_back() -> None:
    x = np.linspace(-3, 3, 12, dtype=np.float32).reshape(3, 4)
    models = [_partial_model(seed, x) for seed in range(20)]
    made = [d for d, name in models if quantized(d, name)]
    assert len(made) > 10
    assert check_case(made[0].case()).kind == "right"
