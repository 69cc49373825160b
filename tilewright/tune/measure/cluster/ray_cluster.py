"""Ray's clusters: an actor on each machine is the worker there.

    with connect("10.0.0.1:6379") as cluster: ...     a cluster that runs; see Ray's documentation
    with connect("local:2") as cluster: ...           one of two workers on this machine, to try it

Needs the package ray, which is imported when a cluster is connected to. Ray pickles what passes
between its own processes, so whoever can reach a cluster's ports can run code on its machines.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib import import_module
from typing import Any

from tilewright.core.errors import ConfigError
from tilewright.tune.measure.cluster.transport import Connection, WorkerLost
from tilewright.tune.measure.cluster.worker import Message, Worker
from tilewright.tune.measure.measurer import MeasureSettings

_LOCAL = re.compile(r"local:([1-9]\d{0,2})")
# A cluster that is started here. Objects larger than its memory for them go to the disk.
_HERE = {
    "address": "local",  # never one that happens to run
    "include_dashboard": False,
    "object_store_memory": 256 << 20,
}
_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}
_CONNECT_SECONDS = 10.0
# Seconds for a worker with nothing to do to tidy up.
_CLOSE_SECONDS = 5.0


@contextmanager
def connect(where: str) -> Iterator[RayCluster]:
    """Connect to a cluster by its address, or start one with `local:N`, for a `with` block."""
    local = _LOCAL.fullmatch(where)
    if where.startswith(("local:", "ray://")) and not local:
        raise ConfigError(
            "cluster.address",
            f"{where!r} is no cluster to measure on",
            help="give the address of its head such as 10.0.0.1:6379, from a machine that is part "
            "of it, or local:2 for two workers on this machine",
        )
    workers, ray = int(local[1]) if local else None, _package()
    try:
        if workers is None:
            _check_reachable(where)
            ray.init(address=where, **_QUIET)
        else:
            ray.init(num_cpus=workers, **_HERE, **_QUIET)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigError(
            "cluster.unreachable",
            f"cannot connect to the cluster {where}: {str(error).partition(chr(10))[0]}",
            help="`ray status` says whether it runs and whether a token is missing; the tuner's "
            "machine must be part of it",
        ) from error
    try:
        yield RayCluster(ray, workers)
    finally:
        ray.shutdown()


def _check_reachable(address: str) -> None:
    """Check that something listens at an address: Ray itself would try for minutes."""
    name, _, port = address.rpartition(":")
    if port.isdigit():
        socket.create_connection((name.strip("[]"), int(port)), _CONNECT_SECONDS).close()


class RayCluster:
    """A connection to Ray; `workers` are on this machine, without it there is one on each."""

    def __init__(self, ray: Any, workers: int | None) -> None:
        self._ray = ray
        self._workers = workers

    def start(self, build: Sequence[str], settings: MeasureSettings) -> Sequence[Connection]:
        """Start workers; one has all cores of its machine, as far as Ray hands them out."""
        actor = self._ray.remote(Worker)
        arguments = (list(build), asdict(settings))
        if self._workers is not None:
            one_core = actor.options(num_cpus=1)
            return [
                RayConnection(self._ray, f"worker {n}", one_core.remote(*arguments))
                for n in range(self._workers)
            ]
        pinned = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        connections: list[Connection] = []
        for node in self._ray.nodes():
            cores = node["Resources"].get("CPU", 0)
            if node["Alive"] and cores:
                where = pinned(node_id=node["NodeID"], soft=False)
                made = actor.options(num_cpus=cores, scheduling_strategy=where).remote(*arguments)
                connections.append(RayConnection(self._ray, node["NodeManagerAddress"], made))
        return connections

    def wait(self, connections: Sequence[Connection], seconds: float) -> Sequence[Connection]:
        """Those that have a message, or whose call or worker has ended."""
        streams = {one.stream: one for one in connections if isinstance(one, RayConnection)}
        ready, _ = self._ray.wait(list(streams), num_returns=1, timeout=seconds)
        return [streams[stream] for stream in ready]


class RayConnection:
    """An actor; `stream` has the messages of its present call."""

    def __init__(self, ray: Any, name: str, actor: Any) -> None:
        self.name = name
        self.stream: Any = None
        self._ray = ray
        self._actor = actor

    def begin(self, method: str, *arguments: object) -> None:
        """Call a method of the actor's `Worker`."""
        call = getattr(self._actor, method).options(num_returns="streaming")
        self.stream = call.remote(*arguments)

    def take(self) -> Message | None:
        """The next message; an exception of the worker's own is a defect and raised here."""
        errors = self._ray.exceptions
        try:
            message: Message = self._ray.get(next(self.stream))
        except StopIteration:
            return None
        except errors.RayTaskError:
            raise
        except errors.RayError as error:
            raise WorkerLost(_reason(str(error))) from error
        return message

    def close(self, gracefully: bool) -> None:
        """End the actor; its processes go with it."""
        if gracefully:
            self.begin("close")
            self._ray.wait([self.stream], timeout=_CLOSE_SECONDS)
        with suppress(ValueError):  # Ray has forgotten it
            self._ray.kill(self._actor)


def _reason(text: str) -> str:
    """Why an actor is dead, of all that Ray has to say about it."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    named = [line for line in lines if line.startswith("The actor is dead because")]
    return (named or lines or ["it is lost"])[-1].partition(" Worker exit type")[0]


def _package() -> Any:
    try:
        return import_module("ray")
    except ImportError as error:
        raise ConfigError(
            "cluster.missing-package",
            f"--cluster needs the package ray: {error}",
            help="pip install 'tilewright[cluster]' on every machine of the cluster",
        ) from error
