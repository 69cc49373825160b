"""Times of a model on a GPU: between two events, its inputs rotated past the L2 cache."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tilewright.runtime.cuda.executable import CudaExecutable
from tilewright.tune.measure.evaluator import Sample

MIN_TIMED_SECONDS = 500e-6
"""Seconds that one time takes at least, in several runs where one is shorter: one launch of a graph
takes some microseconds beside its kernels."""
MAX_RUNS = 100
"""Runs of one time at most, each of which is a part of the graph."""
FIRST_RUNS = 3
"""Runs by which it is estimated how long one takes."""
CACHES = 2
"""The copies of inputs and outputs take so many times what the L2 cache holds."""


class GpuStopwatch:
    """A model with its inputs; `cold` has its weights leave the L2 cache before every run."""

    def __init__(
        self, model: CudaExecutable, inputs: Sequence[np.ndarray], cold: bool = False
    ) -> None:
        self._rotated = model.rotated(*inputs, caches=CACHES, flush=cold)
        self._time(1)  # the first run of a kernel takes longer
        self.least = min(self._time(FIRST_RUNS) for _ in range(2)) / FIRST_RUNS
        wanted = math.ceil(MIN_TIMED_SECONDS / max(self.least, 1e-9))
        self.runs = 1 if cold else max(1, min(MAX_RUNS, wanted))

    def warm(self) -> None:
        """Run without timing: another model ran before."""
        self._time(self.runs)

    def sample(self) -> Sample:
        """Seconds of one run. Nothing tells whether another process was on the GPU meanwhile."""
        return Sample(self._time(self.runs) / self.runs)

    def close(self) -> None:
        """Free the copies."""
        self._rotated.close()

    def _time(self, runs: int) -> float:
        return self._rotated.milliseconds(runs) * 1e-3
