"""What sharing candidates needs of a cluster, however it is made: workers that can be called.

A call is to a method of `Member` and answered by a stream of messages. A worker has one call at a
time, and none after it has gone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tilewright.tune.measure.cluster.worker import Message
from tilewright.tune.measure.measurer import MeasureSettings


class Gone(Exception):
    """A worker ended, or its machine did, or nothing can be heard of them; says why."""


class Link(Protocol):
    """The tuner's end of a connection to a worker."""

    name: str

    def begin(self, method: str, *arguments: object) -> None:
        """Call a method."""

    def take(self) -> Message | None:
        """The next message, for which `Cluster.wait` has waited; None where there are no more."""

    def close(self, kindly: bool) -> None:
        """End the worker; one that is not doing anything can be asked to."""


class Cluster(Protocol):
    """Machines on which workers can be started."""

    def start(self, build: Sequence[str], settings: MeasureSettings) -> Sequence[Link]:
        """Start a worker on each machine."""

    def wait(self, links: Sequence[Link], seconds: float) -> Sequence[Link]:
        """Those that have a message, as soon as there is one; none if there is not in time."""
