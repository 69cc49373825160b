"""Worker processes of the tuner: on one thread, within limits, and what their failures mean."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.errors import TuneError
from tilewright.core.worker.process import Answer, Limits, WorkerProcess

# Libraries that would start threads beside those of the model.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")

RETRIED_FAILURES = frozenset({"crashed", "memory", "wrong"})
"""Failures that what a worker did before may be to blame for."""


def tuning_worker(argv: Sequence[str], limits: Limits | None = None) -> WorkerProcess:
    """A worker that builds or runs candidates."""
    return WorkerProcess(argv, limits=limits or Limits(), variables=_ONE_THREAD)


def check_started(answer: Answer) -> None:
    """Raise if there was no worker to answer: then there is none for other candidates either."""
    if answer.kind == "start":
        raise TuneError(
            "measure.start",
            f"a worker did not start: {answer.failure.removeprefix('start: ')}",
            help="see that its interpreter has tilewright and what it needs, and memory enough",
        )
