from __future__ import annotations

from typing import Any

import pytest

from tilewright.runtime.cuda.cuda_graph import (
    MAX_ROWS,
    CudaGraph,
    LaunchRecorder,
    placeholders,
    ranges_of,
)
from tilewright.runtime.cuda.kernel_args import Arguments
from tilewright.runtime.cuda.plan_executor import BufferBases, PlanExecutor

ONCE = {"threads": 8, "shared": 0, "maps": [], "loop": "", "steps": 1}
# Two launches, of which the second only reads what the first has written.
KERNELS = {
    "k": {
        "sizes": ["n"],
        "byte_ranges": [[["mul", "n", 4], []], [["mul", "n", 4], []]],
        "launches": [{"name": "k", "grid": "n", **ONCE, "reads": [0], "writes": [1]}],
    }
}
FUNCTIONS = {"k": 5}


class _Driver:
    """LaunchRecorder nodes and their changes."""

    def __init__(self, fails: bool = False) -> None:
        self.nodes: list[tuple[list[int], list[int]]] = []
        self.fails = fails
        self.runs: list[list[list[int]]] = []
        self.changed = 0
        self.destroyed: list[tuple[int, int]] = []

    def create_graph(self) -> int:
        return 70

    def add_node(self, graph: int, earlier: list[int], *about: Any) -> int:
        self.nodes.append((earlier, _words(about[2])))
        return len(self.nodes) - 1

    def instantiate(self, graph: int) -> int:
        if self.fails:
            raise RuntimeError("no")
        return 71

    def change_node(self, ready: int, node: int, *about: Any) -> None:
        self.changed += 1
        self.nodes[node] = (self.nodes[node][0], _words(about[2]))

    def launch_graph(self, ready: int, stream: int) -> None:
        self.runs.append([words for _, words in self.nodes])

    def destroy_graph(self, graph: int, ready: int) -> None:
        self.destroyed.append((graph, ready))


def _words(arguments: Arguments) -> list[int]:
    return list(arguments.words)


def _noted(*buffers: tuple[Any, Any]) -> LaunchRecorder:
    notes = LaunchRecorder(KERNELS)
    x, y = placeholders(2)
    run = PlanExecutor(notes, KERNELS, FUNCTIONS, BufferBases([x], [y], 1000, 5000), {}, 0)
    calls = [
        {"do": "call", "step": 0, "kernel": "k", "buffers": list(pair), "sizes": [4]}
        for pair in buffers
    ]
    assert run.do(calls) == 0
    return notes


IN, OUT = ["input", 0, 0], ["output", 0, 8]
A, B = ["arena", 0, 0], ["arena", 16, 0]


def test_nodes_wait_for_what_they_read() -> None:
    driver = _Driver()
    graph = CudaGraph(driver, _noted((IN, A), (IN, B), (A, OUT)).launches, (100, 200))
    assert [earlier for earlier, _ in driver.nodes] == [[], [], [0]]
    assert graph.names == ["k"] * 3


def test_only_what_lies_elsewhere_is_changed() -> None:
    driver = _Driver()
    graph = CudaGraph(driver, _noted((IN, A), (A, B), (B, OUT)).launches, (100, 200))
    for places, changed in (((100, 200), 0), ((100, 300), 1), ((400, 300), 1), ((500, 200), 2)):
        driver.changed = 0
        graph.run(places, 0)
        assert driver.changed == changed
        (x, a, n, _), (_, b, *_), (_, y, *_) = driver.runs[-1]
        assert (x, a, b, y, n) == (places[0], 1000, 1016, places[1] + 8, 4)
    graph.close()
    assert driver.destroyed == [(70, 71)]


def test_a_graph_that_fails_leaves_nothing() -> None:
    driver = _Driver(fails=True)
    with pytest.raises(RuntimeError):
        CudaGraph(driver, _noted((IN, OUT)).launches, (100, 200))
    assert driver.destroyed == [(70, 0)]


def test_copies_are_told() -> None:
    notes = _noted((IN, OUT))
    assert not notes.copies
    notes.copy(1, 2, 3, 0)
    assert notes.copies
    with pytest.raises(AssertionError):
        notes.download(1, 2, 3, 0)


def test_rows_with_gaps_are_told_apart() -> None:
    span = ["w", [[2, 10], ["n", 100]]]
    found = ranges_of(1000, span, {"w": 4, "n": 3})
    assert found == [(s, s + 4) for s in (1000, 1100, 1200, 1010, 1110, 1210)]
    assert ranges_of(0, [8, [[MAX_ROWS + 1, 10]]], {}) == [(0, 10 * MAX_ROWS + 8)]
    assert ranges_of(0, [8, [[0, 10], [MAX_ROWS + 1, 10]]], {}) == []
