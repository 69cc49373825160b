from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.passes.layout.min_cut import Cut

Choices = list[tuple[float, float]]
Links = list[tuple[int, list[int], float]]


def _cost(choices: Choices, links: Links, left: set[int]) -> float:
    total = sum(c[0] if i in left else c[1] for i, c in enumerate(choices))
    return total + sum(
        cost for one, others, cost in links if any((o in left) != (one in left) for o in others)
    )


def _problem(seed: int) -> tuple[Choices, Links]:
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 8))
    choices = [(float(a), float(b)) for a, b in rng.integers(0, 20, (count, 2)) / 2]
    links: Links = []
    for _ in range(int(rng.integers(0, 12))):
        one, *others = rng.permutation(count)[: rng.integers(1, count + 1)].tolist()
        if others:
            links.append((one, others, float(rng.integers(0, 16))))
    return choices, links


@for_each("seed", range(60))
def test_no_other_division_is_cheaper(seed: int) -> None:
    choices, links = _problem(seed)
    cut = Cut()
    for i, (left, right) in enumerate(choices):
        cut.choice(i, left, right)
    for one, others, cost in links:
        cut.differ(one, others, cost)
    found = _cost(choices, links, {int(str(i)) for i in cut.solve()})
    sides = product([False, True], repeat=len(choices))
    best = min(_cost(choices, links, {i for i, s in enumerate(x) if s}) for x in sides)
    assert found == pytest.approx(best)


def test_what_is_fixed_stays_and_draws_others_to_it() -> None:
    cut = Cut()
    cut.fix("first", left=False)
    cut.fix("last", left=True)
    cut.choice("near", left=2.0, right=1.0)
    cut.choice("far", left=1.0, right=2.0)
    cut.differ("last", ["near"], 5.0)
    cut.differ("first", ["far", "near"], 3.0)
    assert cut.solve() == {"last", "near", "far"}


def test_a_draw_goes_to_the_right() -> None:
    cut = Cut()
    cut.choice("a", left=1.0, right=1.0)
    assert cut.solve() == set()
