"""Spaces of schedules of one function: code that makes a schedule, and asks for its decisions.

    space = ConstructedSpace(func, constants, target)
    candidate = sample(space, rng)
    space.trace(candidate)          # plain steps; replaying them needs nothing of this space
    space.text(candidate)           # the same, under a comment with the decisions

How a schedule comes about (built-in rules, sketches, a template, a user's rules) is one method,
`make`; it asks through `Schedule.choose`. A question with one answer is not asked.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

from tilewright.core.errors import Error, ScheduleError
from tilewright.finalize.for_target import finalize_for
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.verify import verify_func
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.schedule.schedule import Decide
from tilewright.target.target import Target
from tilewright.tune.candidate import Candidate, Value
from tilewright.tune.features.program import features_for
from tilewright.tune.space.decision_trie import DecisionTrie
from tilewright.tune.space.space import Choose, Illegal, Site, Space

# The comment above a trace that says by which decisions it was made.
DECISIONS = "# decisions: "
# Functions and rows that are kept: what is drawn is often asked for again at once, and the best of
# one round are looked at in the next.
KEPT_FUNCTIONS = 512
# How much likelier a default is drawn than all else: with a dozen decisions a few change at a time.
FAITHFUL = 3.0
Known = TypeVar("Known")


class ScheduleSpace(Space):
    """All schedules of `func` that one way of making them can give.

    `constants` are the parameters whose layout a schedule may choose.
    """

    def __init__(self, func: Func, constants: frozenset[str], target: Target) -> None:
        self.func_before = func
        self.constants = constants
        self.target = target
        self._made: dict[Candidate, ScheduledFunc] = {}
        self._rows: dict[Candidate, np.ndarray] = {}
        self._trie = DecisionTrie(self._make)

    @abstractmethod
    def make(self, decide: Decide) -> ScheduledFunc:
        """The schedule that these decisions give; a `ScheduleError` if they give none."""

    def build(self, choose: Choose) -> None:
        """Ask for each decision; a schedule is made only where the trie ends."""
        self._trie.ask(choose)

    def _make(self, choose: Choose) -> None:
        made: list[tuple[str, Value]] = []

        def decide(name: str, default: Any, options: tuple[Any, ...]) -> Any:
            if len(options) == 1:
                return options[0]
            assert name not in dict(made), f"decision {name!r} is asked for twice"
            value = choose(Site(name, options, _weights(default, options)))
            made.append((name, value))
            return value

        try:
            scheduled = self.make(decide)
        except ScheduleError as error:
            raise Illegal(error.code) from error
        _keep(self._made, Candidate(tuple(made)), scheduled)

    def default(self) -> Candidate:
        """The candidate with nothing but defaults: where a search begins."""
        made: list[tuple[str, Value]] = []

        def decide(name: str, default: Any, options: tuple[Any, ...]) -> Any:
            if len(options) > 1:
                made.append((name, default))
            return default

        scheduled = self.make(decide)
        found = Candidate(tuple(made))
        _keep(self._made, found, scheduled)
        return found

    def scheduled(self, candidate: Candidate) -> ScheduledFunc:
        """The function that a candidate's decisions make, with its trace and rule."""
        if candidate not in self._made:
            decisions = dict(candidate.decisions)
            self._make(lambda site: decisions[site.name])
        return self._made[candidate]

    def func(self, candidate: Candidate) -> Func:
        """The scheduled function."""
        return self.scheduled(candidate).func

    def trace(self, candidate: Candidate) -> str:
        """The plain steps that make it."""
        return str(self.scheduled(candidate).trace)

    def text(self, candidate: Candidate) -> str:
        """The trace, its decisions in a comment above."""
        decisions = json.dumps(dict(candidate.decisions), separators=(",", ":"))
        return f"{DECISIONS}{decisions}\n{self.trace(candidate)}"

    def parse(self, text: str) -> Candidate | None:
        """The candidate of a text; None if this space does not make the same trace of it."""
        first, _, _ = text.partition("\n")
        if not first.startswith(DECISIONS):
            return None
        candidate = super().parse(first.removeprefix(DECISIONS))
        return candidate if candidate is not None and self.text(candidate) == text else None

    def check(self, candidate: Candidate) -> None:
        """Raise an error unless the schedule is sound: structure, dependences, plain loops."""
        # Imported here because isl takes long to load and only what is measured is checked.
        from tilewright.schedule.legality.check_trace import check_trace

        scheduled = self.scheduled(candidate)
        verify_func(scheduled.func)
        check_trace(self.func_before, scheduled.trace)
        finalize_for(scheduled.func, self.target)

    def legal(self, candidate: Candidate) -> bool:
        """Whether `check` has nothing against it."""
        try:
            self.check(candidate)
        except Error:
            return False
        return True

    def features(self, candidates: Sequence[Candidate]) -> np.ndarray:
        """One row of the scheduled program's features a candidate."""
        return np.vstack([self._row(candidate) for candidate in candidates])

    def _row(self, candidate: Candidate) -> np.ndarray:
        if candidate not in self._rows:
            row = features_for(self.func(candidate), self.target)
            _keep(self._rows, candidate, row)
        return self._rows[candidate]


def _keep(known: dict[Candidate, Known], candidate: Candidate, found: Known) -> None:
    """Remember what was found; what has been known for longest is forgotten."""
    known[candidate] = found
    if len(known) > KEPT_FUNCTIONS:
        del known[next(iter(known))]


def _weights(default: Any, options: tuple[Any, ...]) -> tuple[float, ...]:
    """The default is so many times as likely as all others together."""
    others = float(len(options) - 1)
    return tuple(FAITHFUL * others if option == default else 1.0 for option in options)
