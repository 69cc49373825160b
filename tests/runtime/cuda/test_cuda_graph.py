from __future__ import annotations

from typing import Any

import pytest

from tests.runtime.cuda.recordings import IN, OUT, A, B, recording
from tilewright.runtime.cuda.cuda_graph import CudaGraph
from tilewright.runtime.cuda.driver_failures import DriverFailures
from tilewright.runtime.cuda.kernel_args import Arguments
from tilewright.runtime.cuda.prepared_launch import PreparedLaunch


class _Driver:
    """LaunchRecorder nodes and their changes."""

    def __init__(self, fails: bool = False) -> None:
        self.failures = DriverFailures(None)
        self.nodes: list[tuple[list[int], list[int]]] = []
        self.fails = fails
        self.runs: list[list[list[int]]] = []
        self.changed = 0
        self.destroyed: list[tuple[int, int]] = []

    def create_graph(self) -> int:
        return 70

    def prepared(self, *about: Any) -> PreparedLaunch:
        return PreparedLaunch(*about)

    def add_node(self, graph: int, earlier: list[int], prepared: PreparedLaunch) -> int:
        self.nodes.append((earlier, _words(prepared.arguments)))
        return len(self.nodes) - 1

    def instantiate(self, graph: int) -> int:
        if self.fails:
            raise RuntimeError("no")
        return 71

    def change_node(self, ready: int, node: int, prepared: PreparedLaunch) -> None:
        self.changed += 1
        self.nodes[node] = (self.nodes[node][0], _words(prepared.arguments))

    def launch_graph(self, ready: int, stream: int) -> None:
        self.runs.append([words for _, words in self.nodes])

    def destroy_graph(self, graph: int, ready: int) -> None:
        self.destroyed.append((graph, ready))


def _words(arguments: Arguments) -> list[int]:
    return list(arguments.words)


def test_nodes_wait_for_what_they_read() -> None:
    driver = _Driver()
    graph = CudaGraph(driver, recording((IN, A), (IN, B), (A, OUT)).launches, [100, 200, 1000])
    assert [earlier for earlier, _ in driver.nodes] == [[], [], [0]]
    assert graph.names == ("k",) * 3


def test_only_what_lies_elsewhere_is_changed() -> None:
    driver = _Driver()
    graph = CudaGraph(driver, recording((IN, A), (A, B), (B, OUT)).launches, [100, 200, 1000])
    for places, changed in (
        ([100, 200, 1000], 0),
        ([100, 300, 1000], 1),
        ([400, 300, 1000], 1),
        ([500, 200, 1000], 2),
        ([500, 200, 2000], 3),
    ):
        driver.changed = 0
        graph.run(places, 0)
        assert driver.changed == changed
        (x, a, n, _), (_, b, *_), (_, y, *_) = driver.runs[-1]
        assert (x, a, b, y, n) == (places[0], places[2], places[2] + 16, places[1] + 8, 4)
    graph.close()
    assert driver.destroyed == [(70, 71)]


def test_a_graph_that_fails_leaves_nothing() -> None:
    driver = _Driver(fails=True)
    with pytest.raises(RuntimeError):
        CudaGraph(driver, recording((IN, OUT)).launches, [100, 200, 1000])
    assert driver.destroyed == [(70, 0)]


def test_a_change_that_fails_is_made_again() -> None:
    driver = _Driver()
    graph = CudaGraph(driver, recording((IN, A), (A, OUT)).launches, [100, 200, 1000])
    real = driver.change_node

    def fails(*about: Any) -> None:
        raise RuntimeError("no")

    driver.change_node = fails  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        graph.run([300, 400, 1000], 0)
    driver.change_node = real  # type: ignore[method-assign]
    graph.run([300, 400, 1000], 0)
    (x, *_), (_, y, *_) = driver.runs[-1]
    assert (x, y) == (300, 408)
