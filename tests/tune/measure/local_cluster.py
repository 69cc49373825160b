"""A cluster of Ray on this machine for tests."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tilewright.tune.measure.cluster.measurer import ClusterMeasurer
from tilewright.tune.measure.cluster.ray_cluster import RayCluster, connect

# Ray would leave one in the user's home. It reads it once in a process, so there is one for all.
_TOKEN = secrets.token_hex(32)


@contextmanager
def local_cluster() -> Iterator[RayCluster]:
    """Two workers; skips the test where there is no Ray."""
    pytest.importorskip("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_TOKEN", _TOKEN)
        with connect("local:2") as cluster:
            yield cluster


def worker_pids(measurer: ClusterMeasurer) -> list[int]:
    """The processes of a cluster's workers, as they say themselves."""
    found = []
    for connection in measurer._connections:
        connection.begin("describe")
        message = connection.take()
        assert message is not None
        found.append(message["pid"])
        assert connection.take() is None
    return found
