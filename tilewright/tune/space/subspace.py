"""A subspace that is small enough to be measured whole.

Candidates drawn at random from a large space are not neighbours of each other, and most strategies
need neighbours. So options are drawn instead of candidates: of each decision a few are kept, its
default and others evenly spaced, and the subspace has every combination of those. Decisions get one
more option round-robin until the subspace has as many candidates as were asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

import numpy as np

from tilewright.tune.candidate import Candidate, Value
from tilewright.tune.space.space import Choose, Site, Space
from tilewright.tune.space.variation import enumerate_all


class Subspace(Space):
    """A space whose decisions have at most `widths` options; 1 for a decision not in `widths`.

    `seen` has the decisions that came up so far, with the most options that the whole space had.
    """

    def __init__(self, whole: Space, widths: Mapping[str, int]) -> None:
        self.whole = whole
        self.name = whole.name
        self.widths = widths
        self.seen: dict[str, int] = {}

    def build(self, choose: Choose) -> None:
        """Ask what the whole space asks, offering less."""

        def narrow(site: Site) -> Value:
            self.seen[site.name] = max(len(site.options), self.seen.get(site.name, 0))
            return choose(Site(site.name, _kept(site, self.widths.get(site.name, 1))))

        self.whole.build(narrow)

    def features(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """Those of the whole space."""
        return self.whole.features(candidates)

    def legal(self, candidate: Candidate) -> bool:
        """Whether the whole space holds it for legal."""
        return self.whole.legal(candidate)

    def text(self, candidate: Candidate) -> str:
        """As the whole space spells it."""
        return self.whole.text(candidate)


def largest_subspace(whole: Space, limit: int) -> Subspace:
    """The largest subspace with at most `limit` candidates, all decisions about equally wide."""
    part = Subspace(whole, {})
    full: set[str] = set()
    size = _size(part, limit)
    while waiting := [name for name in part.seen if name not in full]:
        name = min(waiting, key=lambda one: part.widths.get(one, 1))
        width = part.widths.get(name, 1) + 1
        # Not even tried where it would be too large if the decision came up every time.
        expected = size * width // (width - 1)
        wider = Subspace(whole, {**part.widths, name: width})
        found = _size(wider, limit) if width <= part.seen[name] and expected <= limit else 0
        if 0 < found <= limit:
            part, size = wider, found
        else:
            full.add(name)
    return part


def _size(part: Subspace, limit: int) -> int:
    """The number of candidates, counted as far as the limit; every decision is seen on the way."""
    return sum(1 for _ in islice(enumerate_all(part), limit + 1))


def _kept(site: Site, width: int) -> tuple[Value, ...]:
    """The likeliest option and others evenly among the rest, in their order."""
    options = site.options
    if len(options) <= width:
        return options
    weights = site.weights or (1.0,) * len(options)
    default = weights.index(max(weights))
    rest = [place for place in range(len(options)) if place != default]
    others = {rest[(2 * i + 1) * len(rest) // (2 * (width - 1))] for i in range(width - 1)}
    return tuple(options[place] for place in sorted({default, *others}))
