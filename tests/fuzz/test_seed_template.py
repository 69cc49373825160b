from __future__ import annotations

import random

import numpy as np

from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.seed_corpus import seeds_of
from tilewright.fuzz.seed_template import resized, retyped, seed_step


def test_cases_become_steps() -> None:
    seeds = seeds_of("gather")
    taken = 0
    for number in range(12):
        seed = seeds[number % len(seeds)]
        opsets = {o.domain: o.version for o in seed.model.opset_import}
        d = PartialModel(random.Random(number), opsets, lambda case: None)
        d.fresh(np.dtype(np.float32), (3, 5))
        taken += bool(seed_step(d, seed))
    assert taken >= 6


def test_equal_sizes_stay_equal() -> None:
    inputs = {"a": np.ones((3, 4)), "b": np.ones((4, 3))}
    for number in range(20):
        found = resized(random.Random(number), inputs)
        assert found["a"].shape == found["b"].shape[::-1]


def test_types_change_where_the_schema_ties_them() -> None:
    (seed, *_) = [s for s in seeds_of("add") if s.name == "test_add"]
    found = [retyped(random.Random(n), seed, seed.inputs) for n in range(10)]
    assert len({r["x"].dtype for r in found}) > 2
    assert all(r["x"].dtype == r["y"].dtype for r in found)


def test_small_types_become_other_small_types() -> None:
    seeds = [s for s in seeds_of("cast") if any("INT4" in part for part in s.name.split("_"))]
    assert seeds
    for seed in seeds[:4]:
        for number in range(60):
            retyped(random.Random(number), seed, seed.inputs)
