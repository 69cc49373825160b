from __future__ import annotations

import random

import onnx

from tests.for_each import for_each
from tilewright.fuzz.mutators import FREQUENT_MUTATORS, MUTATORS, RARE_MUTATORS
from tilewright.fuzz.seed_corpus import seeds_of


@for_each("name", MUTATORS)
def test_every_mutation_changes_models(name: str) -> None:
    seeds = [*seeds_of("slice"), *seeds_of("if_")]
    changed = 0
    for number in range(12):
        model = onnx.ModelProto()
        model.CopyFrom(seeds[number % len(seeds)].model)
        before = model.SerializeToString()
        MUTATORS[name](random.Random(number), model)
        changed += model.SerializeToString() != before
    assert changed or name == "shuffled"


def test_weights_name_mutations() -> None:
    assert {*FREQUENT_MUTATORS, *RARE_MUTATORS} <= set(MUTATORS)
