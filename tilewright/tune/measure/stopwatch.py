"""Times of a loaded model: between the native clocks, without what Python adds."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import numpy as np

from tilewright.core.host.cache_sizes import cache_sizes
from tilewright.runtime.cpu.executable import Executable
from tilewright.tune.measure.evaluator import Sample
from tilewright.tune.measure.preemption import corrected, counters

MIN_TIMED_SECONDS = 100e-6
"""Seconds that one time takes at least, in several runs where one is shorter."""
MAX_RUNS = 100
"""Runs of one time at most: enough where one takes a microsecond."""
COLD_CACHE_NEGLIGIBLE = 50e-3
"""Seconds of a run beside which what another model left in the caches is little."""
# Where the system does not tell of its caches.
_LARGE_CACHE = 64 << 20


class Stopwatch:
    """A model with its inputs; `cold` empties the caches before every run."""

    def __init__(self, model: Executable, inputs: Sequence[np.ndarray], cold: bool = False) -> None:
        self.model = model
        self.inputs = tuple(inputs)
        self.flush = CacheFlush() if cold else None
        self.threads = model.threads
        self.least = self._shortest()
        self.runs = 1 if cold else self._enough_runs()

    def warm(self) -> None:
        """Run without timing: another model ran before."""
        if self.flush is None and self.least < COLD_CACHE_NEGLIGIBLE:
            self._time(1)

    def sample(self) -> Sample:
        """Seconds of one run."""
        if self.flush is not None:
            self.flush()
        os.sched_yield()  # with a new time slice it is less likely to be interrupted
        before = counters()
        seconds = self._time(self.runs)
        whole = corrected(seconds, before, counters(), self.threads)
        return Sample(whole.seconds / self.runs, whole.disturbed)

    def _shortest(self) -> float:
        """Seconds of a run, about."""
        least = self._time(1)
        if least < 10 * MIN_TIMED_SECONDS:  # short ones may have been disturbed
            least = min(least, self._time(1), self._time(1))
        return least

    def _enough_runs(self) -> int:
        return max(1, min(MAX_RUNS, math.ceil(MIN_TIMED_SECONDS / max(self.least, 1e-9))))

    def _time(self, runs: int) -> float:
        return float(self.model.kernel_times(*self.inputs, runs=runs).sum()) * 1e-9


class CacheFlush:
    """Reads and writes more than the caches hold, on every core that this process may use."""

    def __init__(self) -> None:
        sizes = cache_sizes()
        last = max(sizes.values(), default=_LARGE_CACHE)
        # The caches before the last are each core's own.
        own = max((size for level, size in sizes.items() if level < max(sizes)), default=0)
        self._own = np.zeros(2 * own // 8, np.int64)
        self._shared = np.zeros(2 * last // 8, np.int64)

    def __call__(self) -> None:
        """Empty the caches."""
        cores = os.sched_getaffinity(0)
        try:
            for core in cores if self._own.size else ():
                os.sched_setaffinity(0, {core})
                self._own += 1
        finally:
            os.sched_setaffinity(0, cores)
        self._shared += 1
