"""What a space asks after which answers, remembered: asking anew may mean to schedule anew.

questions = Questions(build)
    questions.ask(choose)           # as `Space.build`; what is known of it is not run again
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from tilewright.tune.candidate import Value
from tilewright.tune.space.space import Choose, Illegal, Site

# Answers that are remembered, some hundred bytes each; with more, all are forgotten.
LIMIT = 50_000


class _Place:
    """A place between questions: the next one and where its answers lead, or how it ends."""

    __slots__ = ("after", "legal", "site")

    def __init__(self) -> None:
        self.site: Site | None = None
        self.after: dict[Value, _Place] = {}
        self.legal: bool | None = None


_Build: TypeAlias = Callable[[Choose], None]


class Questions:
    """The questions of one space, as far as anybody has answered them."""

    def __init__(self, build: _Build) -> None:
        self._build = build
        self._forget()

    def _forget(self) -> None:
        self._first = _Place()
        self._count = 0

    def ask(self, choose: Choose) -> None:
        """Ask for each decision; `Illegal` if they make no program."""
        given: list[Value] = []
        place: _Place | None = self._first
        while place is not None and place.site is not None:
            given.append(choose(place.site))
            place = place.after.get(given[-1])
        if place is None or place.legal is None:
            self._explore(given, choose)
        elif not place.legal:
            raise Illegal("known to be none")

    def _explore(self, given: list[Value], choose: Choose) -> None:
        """Run the space: what is given is answered so, the rest is asked."""
        if self._count > LIMIT:
            self._forget()
        place, answered = self._first, 0

        def noted(site: Site) -> Value:
            nonlocal place, answered
            place.site = site
            value = given[answered] if answered < len(given) else choose(site)
            answered += 1
            if value not in place.after:
                place.after[value] = _Place()
                self._count += 1
            place = place.after[value]
            return value

        try:
            self._build(noted)
        except Illegal:
            place.legal = False
            raise
        place.legal = True
