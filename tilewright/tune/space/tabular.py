"""Tabular spaces: every candidate was measured once, so all times and the optimum are known.

Strategies are compared on them with no hardware and no noise. The options of a knob are those that
lead to a measured configuration, weighted by how many there are behind each, so that a random
candidate is uniform over all of them. In spaces of programs not every decision comes up every time:
a knob that has no value (`None`) in all configurations that are left is not asked for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tilewright.core.node import node
from tilewright.tune.candidate import Candidate, Result, Value
from tilewright.tune.space.knobs import knob_features
from tilewright.tune.space.space import Choose, Site, Space

Key = tuple[Value, ...]


@node
class About:
    """What is known of a measured space beside its times, if it is one of programs.

    `flops` is the work of one run, `kind` the rule that schedules it unless told otherwise;
    `workload` and `target` are as in records; `columns` names the features.
    """

    flops: float = 1.0
    kind: str = ""
    workload: str = ""
    target: str = ""
    columns: tuple[str, ...] = ()


@node
class TabularEntry:
    """The program of a configuration: its trace, and the features of the scheduled loops."""

    trace: str
    features: tuple[float, ...]


class TabularSpace(Space):
    """Measured configurations: values of all knobs, to a time in seconds or to why it failed.

    A knob that has only one value is left out. In a space of programs their features are the
    candidates'; elsewhere these are the values of the knobs.
    """

    def __init__(
        self,
        name: str,
        knobs: Mapping[str, Sequence[Value]],
        times: Mapping[Key, float],
        failures: Mapping[Key, str] | None = None,
        programs: Mapping[Key, TabularEntry] | None = None,
        about: About | None = None,
    ) -> None:
        self.name = name
        self.about = about or About()
        self.knobs = {knob: tuple(values) for knob, values in knobs.items() if len(values) > 1}
        kept = [place for place, values in enumerate(knobs.values()) if len(values) > 1]

        def short(key: Key) -> Key:
            return tuple(key[i] for i in kept)

        self._times = {short(key): time for key, time in times.items()}
        self._failures = {short(key): why for key, why in (failures or {}).items()}
        self.programs = {short(key): program for key, program in (programs or {}).items()}
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
        """Those of the programs, or the values of the knobs and their logarithms."""
        if self.programs:
            rows = [self.programs[self._key(candidate)].features for candidate in candidates]
            return np.array(rows).reshape(len(rows), len(self.about.columns))
        return knob_features(self.knobs, candidates)

    def measure(self, candidates: Sequence[Candidate]) -> list[Result]:
        """What measuring these candidates gave."""
        return [self._result(candidate) for candidate in candidates]

    def _result(self, candidate: Candidate) -> Result:
        key = self._key(candidate)
        if key in self._failures:
            return Result(candidate, failure=self._failures[key])
        return Result(candidate, (self._times[key],))

    def _key(self, candidate: Candidate) -> Key:
        decisions = dict(candidate.decisions)
        return tuple(decisions.get(knob) for knob in self.knobs)

    def measured(self) -> tuple[np.ndarray, np.ndarray]:
        """The features of all programs, and their seconds: infinite for what failed."""
        seconds = [self._times.get(key, math.inf) for key in self.programs]
        return np.array([one.features for one in self.programs.values()]), np.array(seconds)

    def rows(self) -> Iterator[tuple[Key, float | str]]:
        """Every configuration with its time, or why it has none."""
        yield from self._times.items()
        yield from self._failures.items()

    def share_within(self, slack: float) -> float:
        """The fraction of all configurations that are at most `slack` slower than the best."""
        limit = self.optimum * (1 + slack)
        return sum(time <= limit for time in self._times.values()) / len(self)


def _sites(knobs: Mapping[str, Sequence[Value]], keys: Sequence[Key]) -> Any:
    """A tree `(site, {option: tree})`; None under the last knob."""
    if not knobs:
        return None
    (name, values), *rest = knobs.items()
    behind: dict[Value, list[Key]] = {}
    for key in keys:
        behind.setdefault(key[0], []).append(key[1:])
    if behind.keys() == {None}:
        return _sites(dict(rest), behind[None])
    options = tuple(value for value in values if value in behind)
    weights = tuple(float(len(behind[option])) for option in options)
    return (
        Site(name, options, weights),
        {option: _sites(dict(rest), behind[option]) for option in options},
    )
