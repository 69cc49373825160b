"""Spaces that were measured once, whole: every candidate's time is known, and so is the optimum.

Strategies are compared on them with no hardware and no noise. The options of a knob are those that
lead to a measured configuration, weighted by how many there are behind each, so that a random
candidate is any of them with equal chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.tune.candidate import Candidate, Result, Value
from tilewright.tune.space.knobs import knob_features
from tilewright.tune.space.space import Choose, Site, Space


class ReplaySpace(Space):
    """Measured configurations: values of all knobs, to a time in seconds or to why it failed.

    A knob that has only one value is left out.
    """

    def __init__(
        self,
        name: str,
        knobs: Mapping[str, Sequence[Value]],
        times: Mapping[tuple[Value, ...], float],
        failures: Mapping[tuple[Value, ...], str] | None = None,
    ) -> None:
        self.name = name
        self.knobs = {knob: tuple(values) for knob, values in knobs.items() if len(values) > 1}
        kept = [place for place, values in enumerate(knobs.values()) if len(values) > 1]
        self._times = {tuple(key[i] for i in kept): time for key, time in times.items()}
        self._failures = {tuple(key[i] for i in kept): why for key, why in (failures or {}).items()}
        self.optimum = min(self._times.values())
        self._sites = _sites(self.knobs, [*self._times, *self._failures])

    def __len__(self) -> int:
        return len(self._times) + len(self._failures)

    def build(self, choose: Choose) -> None:
        """Ask for each knob, offering what leads to a measured configuration."""
        sites: Any = self._sites
        while sites is not None:
            site, behind = sites
            sites = behind[choose(site)]

    def features(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """The values of the knobs, and their logarithms."""
        return knob_features(self.knobs, candidates)

    def measure(self, candidates: Sequence[Candidate]) -> list[Result]:
        """What measuring these candidates gave."""
        return [self._result(candidate) for candidate in candidates]

    def _result(self, candidate: Candidate) -> Result:
        key = tuple(value for _, value in candidate.decisions)
        if key in self._failures:
            return Result(candidate, failure=self._failures[key])
        return Result(candidate, (self._times[key],))

    def rows(self) -> Iterator[tuple[tuple[Value, ...], float | str]]:
        """Every configuration with its time, or why it has none."""
        yield from self._times.items()
        yield from self._failures.items()

    def share_within(self, slack: float) -> float:
        """The share of all configurations that are at most `slack` slower than the best."""
        limit = self.optimum * (1 + slack)
        return sum(time <= limit for time in self._times.values()) / len(self)


def _sites(knobs: Mapping[str, Sequence[Value]], keys: Sequence[tuple[Value, ...]]) -> Any:
    """A tree `(site, {option: tree})`; None under the last knob."""
    if not knobs:
        return None
    (name, values), *rest = knobs.items()
    behind: dict[Value, list[tuple[Value, ...]]] = {}
    for key in keys:
        behind.setdefault(key[0], []).append(key[1:])
    options = tuple(value for value in values if value in behind)
    weights = tuple(float(len(behind[option])) for option in options)
    return (
        Site(name, options, weights),
        {option: _sites(dict(rest), behind[option]) for option in options},
    )
