"""The worker on one machine of a cluster: it measures there as `Measurer` does locally.

Every method yields messages, dictionaries of plain values, as soon as a result is known. A message
with a `problem` says that this machine cannot measure: its disk is full, for example. Candidates
are built and run in processes of their own, as everywhere.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tilewright.core.errors import Error
from tilewright.core.worker.process import Limits
from tilewright.target.host import host
from tilewright.tune.candidate import Candidate
from tilewright.tune.measure.cluster.job_bundle import JobBundle, unpack
from tilewright.tune.measure.evaluator import Effort
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer, MeasureSettings
from tilewright.tune.target_key import target_text, versions

Message = Mapping[str, Any]
# Only traces are sent: the tuner knows their candidates.
_NO_CANDIDATE = Candidate(())


class Worker:
    """Measures with the processes of this machine; `build` are arguments of its interpreter."""

    def __init__(self, build: Sequence[str], settings: Mapping[str, Any]) -> None:
        self._measurer = Measurer((sys.executable, *build), _settings(settings))
        self._jobs: dict[str, Job] = {}

    def describe(self) -> Iterator[Message]:
        """The target and the versions of this machine."""
        yield {"target": target_text(host()), "versions": dict(versions()), "pid": os.getpid()}

    def measure(
        self, key: str, bundle: JobBundle | None, traces: Sequence[str], incumbent: float
    ) -> Iterator[Message]:
        """The result of each trace, as soon as it is known."""
        try:
            job = self._job(key, bundle)
            programs = [(_NO_CANDIDATE, trace) for trace in traces]
            for number, result in self._measurer.each(job, programs, incumbent):
                yield {"number": number, "times": list(result.times), "failure": result.failure}
        except (Error, OSError) as error:
            yield _problem(error)

    def head_to_head(
        self, key: str, bundle: JobBundle | None, first: str | None, second: str | None
    ) -> Iterator[Message]:
        """The comparison of two traces."""
        try:
            comparison = self._measurer.head_to_head(self._job(key, bundle), first, second)
            yield {"number": 0, **asdict(comparison)}
        except (Error, OSError) as error:
            yield _problem(error)

    def compare(self, bundle: JobBundle, first: str, second: str) -> Iterator[Message]:
        """The comparison of two models among the files of a bundle."""
        folder = self._measurer.folder / "models"
        try:
            job = unpack(bundle, folder)
            comparison = self._measurer.compare(job, folder / first, folder / second)
            yield {"number": 0, **asdict(comparison)}
        except (Error, OSError) as error:
            yield _problem(error)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> Iterator[Message]:
        """End the processes and remove the files."""
        self._measurer.close()
        yield {}

    def _job(self, key: str, bundle: JobBundle | None) -> Job:
        """The job of a key; its files come with the first call."""
        if bundle is not None:
            folder = self._measurer.folder / f"job-{len(self._jobs)}"
            self._jobs[key] = unpack(bundle, folder)
        return self._jobs[key]


def _settings(known: Mapping[str, Any]) -> MeasureSettings:
    parts = {"limits": Limits(**known["limits"]), "effort": Effort(**known["effort"])}
    return MeasureSettings(**{**known, **parts})


def _problem(error: Error | OSError) -> Message:
    return {"problem": error.message if isinstance(error, Error) else str(error)}
