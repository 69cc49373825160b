"""The interface of all spaces: a program that asks for its decisions one after the other.

    class Gemm(Space):
        def build(self, choose):
            tile = choose(Site("tile", (1, 2, 4, 8)))
            choose(Site("unroll", tuple(u for u in (1, 2, 4) if u <= tile)))

What may be chosen can depend on what was chosen before, so one method describes everything: drawing
a candidate, changing one, crossing two and listing all are ways to answer its questions
(`variation.py`). A space of schedules answers the samplings of a trace in this manner; which sketch
to take is a decision like any other.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from tilewright.core.node import node
from tilewright.tune.candidate import Candidate, Value


@node
class Site:
    """A decision to make: one of `options`, drawn with `weights` where some are likelier."""

    name: str
    options: tuple[Value, ...]
    weights: tuple[float, ...] | None = None


class Illegal(Exception):
    """Decisions that make no program; raised by `Space.build`, never seen outside of `tune`."""


Choose: TypeAlias = Callable[[Site], Value]


class Space(ABC):
    """All candidates of one task."""

    name: str = ""

    @abstractmethod
    def build(self, choose: Choose) -> None:
        """Ask `choose` for each decision, in order; `Illegal` if they make no program.

        The same answers lead to the same questions, and no two questions have the same name.
        """

    @abstractmethod
    def features(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """One row of numbers a candidate, for cost models; as wide for every candidate."""

    def legal(self, candidate: Candidate) -> bool:
        """A check too expensive for `build`, made only for what is about to be measured."""
        return True

    def text(self, candidate: Candidate) -> str:
        """The candidate as records keep it, from which its program can be made again."""
        return json.dumps(dict(candidate.decisions), separators=(",", ":"))

    def parse(self, text: str) -> Candidate | None:
        """The candidate that `text` spells; None if it is none of this space."""
        try:
            decisions = json.loads(text)
        except ValueError:
            return None
        if not isinstance(decisions, dict):
            return None
        candidate = Candidate(tuple((name, as_value(v)) for name, v in decisions.items()))
        return candidate if contains(self, candidate) else None


def follow(space: Space, choose: Choose) -> Candidate | None:
    """The candidate that these choices make, or None if they are illegal."""
    made: list[tuple[str, Value]] = []

    def noted(site: Site) -> Value:
        if not site.options:
            raise Illegal(site.name)
        value = choose(site)
        made.append((site.name, value))
        return value

    try:
        space.build(noted)
    except Illegal:
        return None
    return Candidate(tuple(made))


def contains(space: Space, candidate: Candidate) -> bool:
    """Whether the space offers all decisions of the candidate, and asks for no others."""
    decisions = dict(candidate.decisions)

    def choose(site: Site) -> Value:
        if site.name not in decisions or decisions[site.name] not in site.options:
            raise Illegal(site.name)
        return decisions[site.name]

    return follow(space, choose) == candidate


def as_value(parsed: Any) -> Value:
    """JSON has lists where decisions have tuples."""
    return tuple(map(as_value, parsed)) if isinstance(parsed, list) else parsed
