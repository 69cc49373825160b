"""What every strategy must do, on spaces whose optimum is known."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from statistics import median

import pytest

from tests.for_each import for_each
from tests.tune.spaces import FAILING, measure, smooth
from tilewright.tune.candidate import Candidate, Result
from tilewright.tune.cost.ridge import RidgeCost
from tilewright.tune.search import search
from tilewright.tune.space.knobs import KnobSpace
from tilewright.tune.strategy.strategy import Strategy
from tilewright.tune.strategy.table import STRATEGIES

INFORMED = ["genetic", "annealing", "evolutionary"]
ALL = STRATEGIES.names()


def _start(name: str, seed: int, space: KnobSpace | None = None) -> Strategy:
    return STRATEGIES.get(name)(space or smooth(), Random(seed), RidgeCost(seed))


def _best(name: str, seed: int, trials: int) -> float:
    return min(r.seconds for r in search(_start(name, seed), measure, trials, batch=8))


@pytest.mark.parametrize("name", ALL)
def test_the_same_seed_gives_the_same_search(name: str) -> None:
    runs = [search(_start(name, seed), measure, 48, batch=8) for seed in (1, 1, 2)]
    assert runs[0] == runs[1]
    assert (runs[0] == runs[2]) == (name == "grid")


@for_each("name", ALL)
def test_nothing_is_proposed_twice_and_small_spaces_are_used_up(name: str) -> None:
    space = KnobSpace({"a": (1, 2, 3, 4), "b": (1, 2, 3), "c": (1, 2)}, lambda k: k["a"] != 2)
    strategy = _start(name, 0, space)
    results = search(strategy, lambda batch: [Result(c, (1.0,)) for c in batch], 1000, batch=5)
    assert len({result.candidate for result in results}) == len(results) == 18
    assert strategy.propose(4) == []


@for_each("name", ALL)
def test_what_earlier_runs_measured_is_not_proposed_again(name: str) -> None:
    space = KnobSpace({"a": (1, 2, 3, 4), "b": (1, 2, 3)})
    earlier = search(_start(name, 0, space), _one_second, 8, batch=8)
    strategy = _start(name, 1, space)
    strategy.observe(earlier)
    rest = search(strategy, _one_second, 100, batch=8)
    assert len(rest) == 4
    assert not {r.candidate for r in rest} & {r.candidate for r in earlier}


def _one_second(candidates: Sequence[Candidate]) -> list[Result]:
    return [Result(candidate, (1.0,)) for candidate in candidates]


@pytest.mark.parametrize("name", INFORMED)
def test_better_than_random_by_far(name: str) -> None:
    """At 96 trials the distance to the optimum is less than half of what random search leaves."""
    seeds = range(8)
    left = {n: median(_best(n, seed, 96) / 1e-3 - 1 for seed in seeds) for n in ("random", name)}
    assert left["random"] > 0.1
    assert left[name] < 0.5 * left["random"]


@for_each("name", ALL)
def test_a_space_where_everything_fails_is_searched_nevertheless(name: str) -> None:
    def failing(candidates: Sequence[Candidate]) -> list[Result]:
        return [Result(candidate, failure="crash") for candidate in candidates]

    results = search(_start(name, 0), failing, 40, batch=8)
    assert len({result.candidate for result in results}) == 40


@pytest.mark.parametrize("name", ["annealing", "evolutionary"])
def test_failures_teach_to_avoid_them(name: str) -> None:
    """An eighth of the space fails; models learn to stay away."""
    shares = []
    for seed in range(4):
        results = search(_start(name, seed), measure, 96, batch=8)
        late = results[48:]
        shares.append(sum(dict(r.candidate.decisions)["x4"] == FAILING for r in late) / len(late))
    assert median(shares) < 0.125 / 2


@for_each("name", ALL)
def test_what_the_space_finds_illegal_is_not_proposed(name: str) -> None:
    class Strict(KnobSpace):
        def legal(self, candidate: Candidate) -> bool:
            return dict(candidate.decisions)["a"] != 3

    space = Strict({"a": (1, 2, 3), "b": (1, 2, 3)})
    results = search(_start(name, 0, space), _one_second, 100, batch=4)
    assert len(results) == 6


def test_chains_live_on_between_rounds() -> None:
    strategy = _start("annealing", 0)
    chains = strategy.chains  # type: ignore[attr-defined]
    begun = list(chains)
    search(strategy, measure, 64, batch=8)
    assert strategy.chains is chains  # type: ignore[attr-defined]
    assert chains != begun
    assert median(r.seconds for r in measure(chains)) < median(r.seconds for r in measure(begun))


def test_evolution_measures_a_change_of_each_of_the_fastest() -> None:
    strategy = _start("evolutionary", 1)
    strategy.observe(measure(strategy.propose(16)))
    fastest = strategy.best(4)
    heirs = list(strategy.suggest(8))[-4:]
    for heir, parent in zip(heirs, fastest, strict=True):
        assert heir not in strategy.proposed
        assert len(set(heir.decisions) - set(parent.decisions)) == 1


def test_a_model_taught_elsewhere_chooses_the_first_batch() -> None:
    taught = RidgeCost(0)
    taught.ready = True
    taught.predict = lambda rows: rows[:, 0]  # type: ignore[method-assign]
    strategy = STRATEGIES.get("evolutionary")(smooth(), Random(0), taught)
    assert len(list(strategy.suggest(8))) == 7  # and one is drawn
    assert not list(_start("evolutionary", 0).suggest(8))
