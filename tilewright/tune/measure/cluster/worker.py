"""The worker on one machine of a cluster: it measures there as the tuner would at home.

Every method yields messages, dictionaries of plain values; the last call's results are known before
the call has ended. A message with a `problem` says that this machine is of no use: no room on its
disk, for example. What happens to a candidate happens in processes of its own, as everywhere.
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
from tilewright.tune.measure.cluster.job_bundle import Parcel, unpack
from tilewright.tune.measure.evaluator import Effort
from tilewright.tune.measure.job import Job
from tilewright.tune.measure.measurer import Measurer, MeasureSettings
from tilewright.tune.target_key import target_text, versions

Message = Mapping[str, Any]
# Candidates do not travel: the tuner knows whose traces these are.
_ANYBODY = Candidate(())


class Member:
    """Measures with the processes of this machine; `build` are arguments of its interpreter."""

    def __init__(self, build: Sequence[str], settings: Mapping[str, Any]) -> None:
        self._measurer = Measurer((sys.executable, *build), _settings(settings))
        self._jobs: dict[str, Job] = {}

    def declare(self) -> Iterator[Message]:
        """What this machine is, and which versions of what matters it has."""
        yield {"target": target_text(host()), "versions": dict(versions()), "pid": os.getpid()}

    def measure(
        self, key: str, parcel: Parcel | None, traces: Sequence[str], incumbent: float
    ) -> Iterator[Message]:
        """The result of each trace, as soon as it is known."""
        try:
            job = self._job(key, parcel)
            programs = [(_ANYBODY, trace) for trace in traces]
            for number, result in self._measurer.each(job, programs, incumbent):
                yield {"number": number, "times": list(result.times), "failure": result.failure}
        except (Error, OSError) as error:
            yield _problem(error)

    def head_to_head(
        self, key: str, parcel: Parcel | None, first: str | None, second: str | None
    ) -> Iterator[Message]:
        """The comparison of two traces."""
        try:
            comparison = self._measurer.head_to_head(self._job(key, parcel), first, second)
            yield {"number": 0, **asdict(comparison)}
        except (Error, OSError) as error:
            yield _problem(error)

    def compare(self, parcel: Parcel, first: str, second: str) -> Iterator[Message]:
        """The comparison of two models among the files of a bundle."""
        folder = self._measurer.folder / "models"
        try:
            job = unpack(parcel, folder)
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

    def _job(self, key: str, parcel: Parcel | None) -> Job:
        """A job that comes now, or has come before."""
        if parcel is not None:
            folder = self._measurer.folder / f"job-{len(self._jobs)}"
            self._jobs[key] = unpack(parcel, folder)
        return self._jobs[key]


def _settings(known: Mapping[str, Any]) -> MeasureSettings:
    parts = {"limits": Limits(**known["limits"]), "effort": Effort(**known["effort"])}
    return MeasureSettings(**{**known, **parts})


def _problem(error: Error | OSError) -> Message:
    return {"problem": error.message if isinstance(error, Error) else str(error)}
