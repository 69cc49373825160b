from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from tests.schedule.programs import matmul
from tests.tune.space.structures import func_of
from tests.tune.space.test_template import product
from tilewright.target.host import host
from tilewright.tune.space.constructed import ConstructedSpace
from tilewright.tune.space.template import TemplateSpace
from tilewright.tune.space.union import UnionSpace, everything
from tilewright.tune.space.variation import crossover, mutate, sample


def test_the_first_decision_is_the_space() -> None:
    func, constants = func_of("gemm")
    space, rng = everything(func, constants, host()), Random(0)
    drawn = [sample(space, rng) for _ in range(12)]
    assert {dict(c.decisions)["space"] for c in drawn} == {"constructed", "sketches"}
    for one, two in pairwise(drawn):
        for made in (mutate(space, one, rng), crossover(space, one, two, rng)):
            assert made is None or space.parse(space.text(made)) == made


def test_defaults_are_those_of_the_first() -> None:
    func, constants = func_of("softmax")
    alone = ConstructedSpace(func, constants, host())
    both = everything(func, constants, host())
    assert both.default().decisions == (("space", "constructed"), *alone.default().decisions)
    assert both.trace(both.default()) == alone.trace(alone.default())
    assert both.scheduled(both.default()).rule == "rowwise"


def test_a_template_joins_them() -> None:
    func = matmul(7, 9, 5)
    mine = TemplateSpace(func, frozenset(), host(), product)
    space = UnionSpace([mine, ConstructedSpace(func, frozenset(), host())])
    assert space.trace(space.default()) == mine.trace(mine.default())
    with pytest.raises(AssertionError, match="same name"):
        UnionSpace([mine, mine])
