"""CUDA graphs of recorded launches, made node by node: independent launches run concurrently."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.runtime.cuda.driver import Driver
from tilewright.runtime.cuda.kernel_args import Arguments
from tilewright.runtime.cuda.launch_hazards import dependences
from tilewright.runtime.cuda.launch_recorder import RecordedLaunch, placed
from tilewright.runtime.cuda.placed_launches import PlacedLaunches


class RepeatedGraph:
    """Recorded launches as one CUDA graph that does them several times, each after the one before.

    Each time the buffers are at the next of `places`.
    """

    def __init__(
        self, driver: Driver, launches: Sequence[RecordedLaunch], places: Sequence[Sequence[int]]
    ) -> None:
        self._driver = driver
        self._graph, self._ready = driver.create_graph(), 0
        earlier = dependences([recorded.access for recorded in launches])
        followed = {n for those in earlier for n in those}
        last: list[int] = []
        try:
            for there in places:
                nodes: list[int] = []
                for recorded, those in zip(launches, earlier, strict=True):
                    given = Arguments(placed(recorded, there), recorded.matrices)
                    about = (recorded.function, recorded.shape, given, recorded.name)
                    before = [nodes[n] for n in those] or last
                    prepared = driver.prepared(*about)
                    nodes.append(driver.add_node(self._graph, before, prepared))
                last = [node for n, node in enumerate(nodes) if n not in followed]
            self._ready = driver.instantiate(self._graph)
        except BaseException:
            self.close()
            raise

    def run(self, stream: int) -> None:
        """Do all of it."""
        self._driver.launch_graph(self._ready, stream)

    def close(self) -> None:
        """Destroy the graph."""
        self._driver.destroy_graph(self._graph, self._ready)


class CudaGraph(PlacedLaunches):
    """Recorded launches as one CUDA graph, whose nodes are changed where buffers have moved."""

    def __init__(
        self, driver: Driver, launches: Sequence[RecordedLaunch], places: Sequence[int]
    ) -> None:
        super().__init__(driver, launches, places)
        self._nodes: list[int] = []
        self._graph, self._ready = driver.create_graph(), 0
        try:
            for prepared, those in zip(
                self.prepared, dependences([r.access for r in launches]), strict=True
            ):
                earlier = [self._nodes[one] for one in those]
                self._nodes.append(driver.add_node(self._graph, earlier, prepared))
            self._ready = driver.instantiate(self._graph)
        except BaseException:
            self.close()
            raise

    def run(self, places: Sequence[int], stream: int) -> None:
        """Launch the graph on buffers at these addresses."""
        driver = self._driver
        if places != self.places:
            self._change(places)
        driver.failures.launched = self.names
        driver.launch_graph(self._ready, stream)

    def _change(self, places: Sequence[int]) -> None:
        try:
            for n in self.move(places):
                self._driver.change_node(self._ready, self._nodes[n], self.prepared[n])
        except BaseException:
            self.places = []  # some nodes are changed, and some are not
            raise

    def close(self) -> None:
        """Destroy the graph; it may still run."""
        self._driver.destroy_graph(self._graph, self._ready)
