"""The baseline of all search."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.tune.candidate import Candidate
from tilewright.tune.strategy.strategy import Strategy


class RandomSearch(Strategy):
    """Candidates drawn at random, none twice."""

    def suggest(self, n: int) -> Iterable[Candidate]:
        """Nothing: batches are filled up at random."""
        return ()
