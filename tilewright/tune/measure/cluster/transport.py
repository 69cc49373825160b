"""The interface of a cluster, whatever it is made with: workers that can be called remotely.

A call is to a method of `Worker` and answered by a stream of messages. A worker has one call at a
time, and none after it was lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tilewright.tune.measure.cluster.worker import Message
from tilewright.tune.measure.measurer import MeasureSettings


class WorkerLost(Exception):
    """A worker or its machine ended, or cannot be reached any more; says why."""


class Connection(Protocol):
    """The tuner's end of a connection to a worker."""

    name: str

    def begin(self, method: str, *arguments: object) -> None:
        """Call a method."""

    def take(self) -> Message | None:
        """The next message, once `Cluster.wait` has returned; None after the last one."""

    def close(self, gracefully: bool) -> None:
        """End the worker; one that is idle can be asked to end `gracefully`."""


class Cluster(Protocol):
    """Machines on which workers can be started."""

    def start(self, build: Sequence[str], settings: MeasureSettings) -> Sequence[Connection]:
        """Start a worker on each machine."""

    def wait(self, connections: Sequence[Connection], seconds: float) -> Sequence[Connection]:
        """Those that have a message, as soon as there is one; none if there is not in time."""
