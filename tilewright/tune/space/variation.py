"""Ways through a space: draw a candidate, change one, cross two, list neighbours or all.

Each answers the questions of `Space.build` in its own manner. A decision that is kept from an older
candidate but is no longer among the options is drawn anew, so that a change early in a program
carries as much of the rest along as still fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from tilewright.tune.candidate import Candidate, Value
from tilewright.tune.space.space import Choose, Site, Space, follow

# How often a move may end in an illegal candidate before it is given up.
ATTEMPTS = 20


def draw(site: Site, rng: Random) -> Value:
    """One of the options, by their weights."""
    if site.weights is None:
        return rng.choice(site.options)
    return rng.choices(site.options, site.weights)[0]


def sample(space: Space, rng: Random) -> Candidate | None:
    """A legal candidate drawn at random; None if none was found."""
    return _first_legal(space, lambda: lambda site: draw(site, rng))


def mutate(space: Space, candidate: Candidate, rng: Random) -> Candidate | None:
    """The candidate with one decision changed; None if no change was found."""

    def change() -> Choose:
        name, old = rng.choice(candidate.decisions)

        def choose(site: Site) -> Value:
            return _other(site, old, rng) if site.name == name else keep(site)

        keep = _keeping(dict(candidate.decisions), rng)
        return choose

    return _first_legal(space, change, candidate) if candidate.decisions else None


def crossover(space: Space, one: Candidate, two: Candidate, rng: Random) -> Candidate | None:
    """A candidate that takes each decision from one of its parents."""
    parents = (dict(one.decisions), dict(two.decisions))

    def cross() -> Choose:
        return lambda site: _keeping(parents[rng.random() < 0.5], rng)(site)

    return _first_legal(space, cross)


def neighbours(space: Space, candidate: Candidate, rng: Random) -> Iterator[Candidate]:
    """Every candidate that differs in one decision, and in what that makes impossible."""
    old = dict(candidate.decisions)
    keep = _keeping(old, rng)
    for site in sites_of(space, candidate):
        for option in site.options:
            found = (
                follow(space, _with(site.name, option, keep)) if option != old[site.name] else None
            )
            if found is not None:
                yield found


def sites_of(space: Space, candidate: Candidate) -> list[Site]:
    """The decisions that the space asks for on the way to a candidate."""
    sites: list[Site] = []
    old = dict(candidate.decisions)

    def choose(site: Site) -> Value:
        sites.append(site)
        return old[site.name]

    follow(space, choose)
    return sites


def enumerate_all(space: Space) -> Iterator[Candidate]:
    """Every legal candidate once, the last decision changing fastest."""
    path: list[list[int]] = []  # at each site: the option taken, and how many there are
    while True:
        depth = 0

        def choose(site: Site) -> Value:
            nonlocal depth
            if depth == len(path):
                path.append([0, len(site.options)])
            depth += 1
            return site.options[path[depth - 1][0]]

        found = follow(space, choose)
        if found is not None:
            yield found
        while path and path[-1][0] + 1 == path[-1][1]:
            path.pop()
        if not path:
            return
        path[-1][0] += 1


def _first_legal(
    space: Space, policy: Callable[[], Choose], unlike: Candidate | None = None
) -> Candidate | None:
    for _ in range(ATTEMPTS):
        found = follow(space, policy())
        if found is not None and found != unlike:
            return found
    return None


def _keeping(decisions: dict[str, Value], rng: Random) -> Choose:
    def choose(site: Site) -> Value:
        if site.name in decisions and decisions[site.name] in site.options:
            return decisions[site.name]
        return draw(site, rng)

    return choose


def _with(name: str, option: Value, keep: Choose) -> Choose:
    return lambda site: option if site.name == name else keep(site)


def _other(site: Site, old: Value, rng: Random) -> Value:
    """Another option: half of the time one beside the old one, as options come in order."""
    if old in site.options and len(site.options) > 1:
        at = site.options.index(old)
        if rng.random() < 0.5:
            beside = [i for i in (at - 1, at + 1) if 0 <= i < len(site.options)]
            return site.options[rng.choice(beside)]
        return site.options[(at + rng.randrange(1, len(site.options))) % len(site.options)]
    return draw(site, rng)
