from __future__ import annotations

from typing import Any

from tests.runtime.cuda.recordings import IN, OUT, A, recording
from tilewright.runtime.cuda.driver_failures import DriverFailures
from tilewright.runtime.cuda.placed_launches import PlacedLaunches
from tilewright.runtime.cuda.prepared_launch import PreparedLaunch


class _Driver:
    """Notes the words of launches, and their streams."""

    def __init__(self) -> None:
        self.failures = DriverFailures(None)
        self.done: list[tuple[list[int], int]] = []

    def prepared(self, *about: Any) -> PreparedLaunch:
        return PreparedLaunch(*about)

    def start(self, prepared: PreparedLaunch, stream: int) -> None:
        self.done.append((list(prepared.arguments.words), stream))


def test_launches_follow_their_buffers_in_any_stream() -> None:
    driver = _Driver()
    launches = PlacedLaunches(driver, recording((IN, A), (A, OUT)).launches, [100, 200, 1000])
    for places, stream in (([100, 200, 1000], 0), ([300, 200, 1000], 7), ([300, 400, 2000], 7)):
        driver.done.clear()
        launches.run(places, stream)
        x, y, arena = places
        assert driver.done == [([x, arena, 4, 0], stream), ([arena, y + 8, 4, 0], stream)]
    assert driver.failures.launched == launches.names == ("k", "k")
