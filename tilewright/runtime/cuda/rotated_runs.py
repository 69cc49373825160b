"""Runs of a model one after another, each on the next of several copies of its inputs and outputs.

    with RotatedRuns(context, size=2 * l2) as runs:
        runs.milliseconds(20)        # of 20 runs together, on the GPU's clock

The copies take more memory than the L2 cache holds, so that no run finds there what it has read
before. All runs are one CUDA graph, in which each waits for the one before: the host launches once,
and what that takes is divided by the number of runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.runtime.cuda.cuda_graph import RepeatedGraph

if TYPE_CHECKING:
    from tilewright.runtime.cuda.execution_context import CudaExecutionContext

# The most copies: of tiny inputs no number of them would fill a cache.
MAX_COPIES = 64


class RotatedRuns:
    """A context's inputs, which are there already, `size` bytes of copies, and a graph of runs.

    With `flush`, that many bytes are written before each sample: the weights leave the L2 as well.
    """

    def __init__(self, context: CudaExecutionContext, size: int, flush: bool = False) -> None:
        self._context = context
        self._size = size
        self._scratch = context.driver.allocate(size) if flush else 0
        self._copies: list[list[int]] = []
        self._memory: list[int] = []
        self._graph: RepeatedGraph | None = None
        self._runs = 0
        each = max(1, sum(context.bytes))
        for _ in range(min(MAX_COPIES, -(-size // each))):
            self._copies.append(self._copy())
        self._copies.append(context.places)
        self._events = [context.driver.create_event() for _ in range(2)]

    def __enter__(self) -> RotatedRuns:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def milliseconds(self, runs: int) -> float:
        """How long so many runs take together."""
        driver, stream = self._context.driver, self._context.stream
        start, end = self._events
        if self._scratch:
            driver.fill(self._scratch, 0, self._size, stream)
        graph = self._of(runs)
        driver.record(start, stream)
        if graph is None:
            for n in range(runs):
                self._context.launch_all(places=self._copies[n % len(self._copies)])
        else:
            graph.run(stream)
        driver.record(end, stream)
        return driver.elapsed(start, end)

    def close(self) -> None:
        """Free the copies and the graph."""
        driver = self._context.driver
        if self._graph is not None:
            self._graph.close()
        for event in self._events:
            driver.destroy_event(event)
        for memory in filter(None, (*self._memory, self._scratch)):
            driver.free(memory)
        self._graph, self._events, self._memory, self._scratch = None, [], [], 0

    def _copy(self) -> list[int]:
        """Memory of its own for each input and output, with the arena; inputs have their values."""
        context = self._context
        driver, inputs = context.driver, len(context.plan.inputs)
        memory = [driver.allocate(size) for size in context.bytes]
        self._memory += memory
        for place, source, size in zip(
            memory, context.places[:inputs], context.bytes, strict=False
        ):
            if size:
                driver.copy(place, source, size, context.stream)
        return [*memory, context.arena]

    def _of(self, runs: int) -> RepeatedGraph | None:
        """The graph of so many runs, `None` for a model that no graph can have."""
        if runs != self._runs:
            if self._graph is not None:
                self._graph.close()
            launches = self._context.recorded()
            places: Sequence[Sequence[int]] = [
                self._copies[n % len(self._copies)] for n in range(runs)
            ]
            made = None
            if launches is not None:
                made = RepeatedGraph(self._context.driver, launches, places)
            self._graph, self._runs = made, runs
        return self._graph
