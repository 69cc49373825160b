"""How far a session may go, in trials or in seconds, and how far it will come."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from tilewright.tune.measure.measurer import MeasureSettings

# Seconds that the last comparison of a task takes, more or less.
FINAL_SECONDS = 3.0
# Seconds that both programs of a model may be compared for; with a large budget a fraction of it.
COMPARISON_SECONDS = MeasureSettings.model_seconds
COMPARISON_SHARE = 1 / 30
# What counts is compared twice.
COMPARISONS = 2
# The largest fraction of a budget for the comparisons of tasks, and for that of the model.
FINAL_SHARE = 0.3
# Where only trials are given, all comparisons together may take this fraction of the time of the
# search, and so many seconds after a short one; a part of that is for one comparison of the model.
LATER_SHARE, LATER_SECONDS = 0.5, 30.0
MODEL_PART = 0.25
# The largest fraction for one batch, so that there can be several.
BATCH_SHARE = 0.15
# Smaller batches are not worth what choosing them takes, and before anything is measured nobody
# knows how long a trial takes.
SMALL_BATCH = 4


class Budget:
    """The trials and the seconds of a session.

    Time counts from when it is made, trials from when the search begins.
    """

    def __init__(
        self,
        trials: int | None,
        budget: float | None,
        batch: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.trials = trials
        self.budget = budget
        self.batch = batch
        self._clock = clock
        self._start = self._begun = clock()
        self._compared_since: float | None = None
        self._known = 0

    def begin(self, known: int) -> None:
        """The search begins; so many trials were made before."""
        self._begun, self._known = self._clock(), known

    @property
    def elapsed(self) -> float:
        """Seconds since the session began."""
        return self._clock() - self._start

    def begin_comparisons(self) -> None:
        """The search has ended, and what it has found is compared."""
        self._compared_since = self.elapsed

    @property
    def is_late(self) -> bool:
        """Whether all the time that is left is for the model as a whole."""
        return self.elapsed >= self._end - self._model_seconds

    @property
    def is_over(self) -> bool:
        """Whether no time is left for a further comparison of the model."""
        return self.elapsed >= self._end

    @property
    def comparison_seconds(self) -> float:
        """How long the model before and after may be compared."""
        if self.budget is not None:
            wanted = max(COMPARISON_SECONDS, COMPARISON_SHARE * self.budget)
            return min(wanted, FINAL_SHARE * self.budget / COMPARISONS)
        return min(COMPARISON_SECONDS, MODEL_PART * self._later_seconds)

    @property
    def _later_seconds(self) -> float:
        """How long all comparisons may take where only trials are given."""
        return max(LATER_SECONDS, LATER_SHARE * (self._compared_since or 0.0))

    @property
    def _end(self) -> float:
        """When the last comparison should be over, in seconds since the session began."""
        if self.budget is not None:
            return self.budget
        if self._compared_since is None:
            return math.inf
        return self._compared_since + self._later_seconds

    @property
    def _model_seconds(self) -> float:
        """What is kept for the comparison of the model."""
        return COMPARISONS * self.comparison_seconds

    def left(self, done: int) -> float:
        """Seconds until the search ends, as far as can be told after so many trials."""
        ends = [math.inf]
        if self.budget is not None:
            ends.append(self.budget - self.elapsed)
        if self.trials is not None and done > self._known:
            ends.append((self.trials - done) * self._trial_seconds(done))
        return max(0.0, min(ends))

    def allowed(self, done: int, finals: int) -> int:
        """How many trials the next batch may have when so many tasks wait for a comparison."""
        wanted = self.batch
        if self.trials is not None:
            wanted = min(wanted, self.trials - done)
        if self.budget is None:
            return wanted
        kept = min(FINAL_SECONDS * finals, FINAL_SHARE * self.budget)
        free = self.budget - self.elapsed - kept - (self._model_seconds if finals else 0.0)
        if done <= self._known:
            return min(wanted, SMALL_BATCH) if free > 0 else 0
        one = self._trial_seconds(done)
        return min(wanted, int(free / one), max(SMALL_BATCH, int(BATCH_SHARE * self.budget / one)))

    def _trial_seconds(self, done: int) -> float:
        return (self._clock() - self._begun) / (done - self._known)
