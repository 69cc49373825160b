"""Recorded launches, with inputs, outputs and the arena at addresses that may change."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.runtime.cuda.driver import Driver
from tilewright.runtime.cuda.kernel_args import Arguments
from tilewright.runtime.cuda.launch_recorder import RecordedLaunch, uses


class PlacedLaunches:
    """Launches one after another. Not thread-safe: their arguments are changed in place."""

    def __init__(
        self, driver: Driver, launches: Sequence[RecordedLaunch], places: Sequence[int]
    ) -> None:
        self._driver = driver
        self.prepared = [
            driver.prepared(r.function, r.shape, Arguments(r.words, r.matrices), r.name)
            for r in launches
        ]
        self.names = tuple(recorded.name for recorded in launches)
        self._uses = uses(launches)
        self.places: list[int] = []
        self.move(places)

    def run(self, places: Sequence[int], stream: int) -> None:
        """Launch all on buffers at these addresses."""
        if places != self.places:
            self.move(places)
        driver = self._driver
        driver.failures.launched = self.names
        for prepared in self.prepared:
            driver.start(prepared, stream)

    def move(self, places: Sequence[int]) -> list[int]:
        """Update the addresses of buffers; gives the launches that changed."""
        old, self.places = self.places or [-1] * len(places), list(places)
        changed = set()
        for port, (before, now) in enumerate(zip(old, places, strict=True)):
            if before != now:
                for n, position, behind in self._uses.get(port, ()):
                    self.prepared[n].arguments.words[position] = now + behind
                    changed.add(n)
        return sorted(changed)
