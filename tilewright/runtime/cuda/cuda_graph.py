"""A CUDA graph of all launches of a run, whose inputs and outputs may be at any address.

The run is recorded with placeholders for its inputs and outputs, numbers that are no address and no
size. So the recorder knows which kernel parameters they are, and only those nodes are updated when
a call's arrays lie elsewhere than those of the call before.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.runtime.cuda.driver import Driver
from tilewright.runtime.cuda.kernel_args import Arguments, TensorMapArg
from tilewright.runtime.cuda.launch_hazards import BufferAccess, Range, dependences
from tilewright.runtime.size_expr import evaluate

_FIRST, _EACH = 1 << 60, 1 << 44
MAX_ROWS = 256
"""Rows of a strided buffer that get byte ranges of their own."""


def placeholders(count: int) -> list[int]:
    """Placeholders for the addresses of inputs and outputs, far from each other and all others."""
    return [_FIRST + n * _EACH for n in range(count)]


@dataclass(frozen=True)
class RecordedLaunch:
    """A launch: the kernel, its shape and parameters, and the memory it reads and writes."""

    function: int
    shape: tuple[int, int, int]
    words: tuple[int, ...]
    name: str
    used: frozenset[int]
    access: BufferAccess
    matrices: tuple[TensorMapArg, ...] = ()


@dataclass
class LaunchRecorder:
    """Records launches instead of doing them; `copies` is set by a copy."""

    kernels: Mapping[str, Any]
    launches: list[RecordedLaunch] = field(default_factory=list)
    copies: bool = False

    def __post_init__(self) -> None:
        self._known = {
            launch["name"]: (kernel, launch)
            for kernel in self.kernels.values()
            for launch in kernel["launches"]
        }

    def launch(
        self,
        function: int,
        shape: tuple[int, int, int],
        arguments: Arguments,
        stream: int,
        name: str,
    ) -> None:
        """Record a launch."""
        words = tuple(arguments.words)
        launch = self._known[name][1]
        used = frozenset((*launch["reads"], *launch["writes"]))
        about = (used, self._access(name, words), arguments.matrices)
        self.launches.append(RecordedLaunch(function, shape, words, name, *about))

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Record that something is copied."""
        self.copies = True

    def download(self, to: int, source: int, size: int, stream: int) -> None:
        """Never called: a capturable plan reads nothing back."""
        raise AssertionError("a captured run reads nothing back")

    def synchronize(self, stream: int, doing: str = "") -> None:
        """Nothing to wait for: launches are only recorded."""

    def _access(self, name: str, words: Sequence[int]) -> BufferAccess:
        kernel, launch = self._known[name]
        byte_ranges = kernel["byte_ranges"]
        # the last word is the index of a step
        sizes = dict(zip(kernel["sizes"], words[len(byte_ranges) : -1], strict=True))

        def ranges(numbers: Sequence[int]) -> tuple[Range, ...]:
            return tuple(r for n in numbers for r in ranges_of(words[n], byte_ranges[n], sizes))

        return BufferAccess(ranges(launch["reads"]), ranges(launch["writes"]))


def ranges_of(start: int, span: Sequence[Any], sizes: Mapping[str, int]) -> list[Range]:
    """The byte ranges of a buffer: each row, or one range where there are many."""
    run = evaluate(span[0], sizes)
    rows = [(evaluate(count, sizes), evaluate(step, sizes)) for count, step in span[1]]
    if math.prod(count for count, _ in rows) > MAX_ROWS:
        return [(start, start + run + sum((count - 1) * step for count, step in rows))]
    starts = [start]
    for count, step in rows:
        starts = [one + n * step for one in starts for n in range(count)]
    return [(one, one + run) for one in starts]


def placed(recorded: RecordedLaunch, places: Sequence[int]) -> tuple[int, ...]:
    """The parameters of a launch with inputs and outputs at these addresses."""
    words = list(recorded.words)
    for position in recorded.used:
        if words[position] >= _FIRST:
            port, behind = divmod(words[position] - _FIRST, _EACH)
            words[position] = places[port] + behind
    return tuple(words)


class RepeatedGraph:
    """Recorded launches as one CUDA graph that does them several times, each after the one before.

    Each time inputs and outputs are at the next of `places`.
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
                    nodes.append(driver.add_node(self._graph, before, *about))
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


class CudaGraph:
    """Recorded launches as a CUDA graph; independent ones run concurrently.

    It is made with the `places` at which inputs and outputs lie first.
    """

    def __init__(
        self, driver: Driver, launches: Sequence[RecordedLaunch], places: Sequence[int]
    ) -> None:
        self._driver = driver
        self._launches = launches
        self._arguments = [Arguments(recorded.words, recorded.matrices) for recorded in launches]
        self._places: list[int] = []
        # for each input and output, the uses of its address: launch, argument, offset
        self._wanted: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for n, recorded in enumerate(launches):
            for position in recorded.used:
                if recorded.words[position] >= _FIRST:
                    port, behind = divmod(recorded.words[position] - _FIRST, _EACH)
                    self._wanted[port].append((n, position, behind))
        self._move(places)
        self._nodes: list[int] = []
        self._graph, self._ready = driver.create_graph(), 0
        try:
            self._make()
        except BaseException:
            self.close()
            raise

    def run(self, places: Sequence[int], stream: int) -> None:
        """Run all launches on inputs and outputs at these addresses."""
        for n in self._move(places):
            recorded, given = self._launches[n], self._arguments[n]
            about = (recorded.function, recorded.shape, given, recorded.name)
            self._driver.change_node(self._ready, self._nodes[n], *about)
        self._driver.launch_graph(self._ready, stream)

    @property
    def names(self) -> list[str]:
        """The kernels of the graph."""
        return [recorded.name for recorded in self._launches]

    def close(self) -> None:
        """Destroy the graph."""
        self._driver.destroy_graph(self._graph, self._ready)

    def _make(self) -> None:
        earlier = dependences([recorded.access for recorded in self._launches])
        for recorded, given, those in zip(self._launches, self._arguments, earlier, strict=True):
            nodes = [self._nodes[one] for one in those]
            about = (recorded.function, recorded.shape, given, recorded.name)
            self._nodes.append(self._driver.add_node(self._graph, nodes, *about))
        self._ready = self._driver.instantiate(self._graph)

    def _move(self, places: Sequence[int]) -> list[int]:
        """Update the addresses of inputs and outputs; gives the launches that changed."""
        old, self._places = self._places or [0] * len(places), list(places)
        changed = set()
        for port, (before, now) in enumerate(zip(old, places, strict=True)):
            if before != now:
                for n, position, behind in self._wanted[port]:
                    self._arguments[n].words[position] = now + behind
                    changed.add(n)
        return sorted(changed)
