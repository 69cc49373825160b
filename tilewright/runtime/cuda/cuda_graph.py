"""The launches of a run as one graph of the driver, in which arrays of callers may lie anywhere.

A run is noted with stand-ins for its inputs and outputs, numbers that no address and no size is. So
it is known which arguments of which launches are theirs, and only those are changed where a call's
arrays lie elsewhere than those of the call before.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.runtime.cuda.driver import Driver
from tilewright.runtime.cuda.kernel_args import Arguments, Matrix
from tilewright.runtime.cuda.launch_hazards import Access, Range, waits
from tilewright.runtime.size_tree import value_of

_FIRST, _EACH = 1 << 60, 1 << 44
MOST_ROWS = 256
"""Rows of a buffer with gaps that are told apart."""


def stand_ins(count: int) -> list[int]:
    """Addresses for so many inputs and outputs, far apart from each other and all others."""
    return [_FIRST + n * _EACH for n in range(count)]


@dataclass(frozen=True)
class Noted:
    """A launch: what runs, on what, which of its arguments it uses, what it reads and writes."""

    function: int
    shape: tuple[int, int, int]
    words: tuple[int, ...]
    name: str
    used: frozenset[int]
    access: Access
    matrices: tuple[Matrix, ...] = ()


@dataclass
class Notes:
    """What a run launches, noted instead of done; `copies` tells that it also copies."""

    kernels: Mapping[str, Any]
    launches: list[Noted] = field(default_factory=list)
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
        """Note a launch."""
        words = tuple(arguments.words)
        launch = self._known[name][1]
        used = frozenset((*launch["reads"], *launch["writes"]))
        about = (used, self._access(name, words), arguments.matrices)
        self.launches.append(Noted(function, shape, words, name, *about))

    def copy(self, to: int, source: int, size: int, stream: int) -> None:
        """Note that something is copied."""
        self.copies = True

    def download(self, to: int, source: int, size: int, stream: int) -> None:
        """Never asked for by a run that is the same every time."""
        raise AssertionError("a run that is noted reads nothing back")

    def synchronize(self, stream: int, doing: str = "") -> None:
        """Nothing has been done yet."""

    def _access(self, name: str, words: Sequence[int]) -> Access:
        kernel, launch = self._known[name]
        spans = kernel["spans"]
        # the last word is the number of a step
        sizes = dict(zip(kernel["sizes"], words[len(spans) : -1], strict=True))

        def ranges(numbers: Sequence[int]) -> tuple[Range, ...]:
            return tuple(r for n in numbers for r in ranges_of(words[n], spans[n], sizes))

        return Access(ranges(launch["reads"]), ranges(launch["writes"]))


def ranges_of(start: int, span: Sequence[Any], sizes: Mapping[str, int]) -> list[Range]:
    """Where a buffer's bytes are: each row, or where there are many all from first to last."""
    run = value_of(span[0], sizes)
    rows = [(value_of(count, sizes), value_of(step, sizes)) for count, step in span[1]]
    if math.prod(count for count, _ in rows) > MOST_ROWS:
        return [(start, start + run + sum((count - 1) * step for count, step in rows))]
    starts = [start]
    for count, step in rows:
        starts = [one + n * step for one in starts for n in range(count)]
    return [(one, one + run) for one in starts]


class Graph:
    """Noted launches, ready to be run as a whole; those that may run side by side do.

    It is made with the `places` at which inputs and outputs lie first.
    """

    def __init__(self, driver: Driver, launches: Sequence[Noted], places: Sequence[int]) -> None:
        self._driver = driver
        self._launches = launches
        self._arguments = [Arguments(noted.words, noted.matrices) for noted in launches]
        self._places: list[int] = []
        # for each input and output, where its address is wanted: launch, argument, bytes behind
        self._wanted: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for n, noted in enumerate(launches):
            for position in noted.used:
                if noted.words[position] >= _FIRST:
                    port, behind = divmod(noted.words[position] - _FIRST, _EACH)
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
        """Run all launches on inputs and outputs that lie at these addresses."""
        for n in self._move(places):
            noted, given = self._launches[n], self._arguments[n]
            about = (noted.function, noted.shape, given, noted.name)
            self._driver.change_node(self._ready, self._nodes[n], *about)
        self._driver.launch_graph(self._ready, stream)

    @property
    def names(self) -> list[str]:
        """The kernels that run."""
        return [noted.name for noted in self._launches]

    def close(self) -> None:
        """Give the graph back."""
        self._driver.destroy_graph(self._graph, self._ready)

    def _make(self) -> None:
        earlier = waits([noted.access for noted in self._launches])
        for noted, given, those in zip(self._launches, self._arguments, earlier, strict=True):
            nodes = [self._nodes[one] for one in those]
            about = (noted.function, noted.shape, given, noted.name)
            self._nodes.append(self._driver.add_node(self._graph, nodes, *about))
        self._ready = self._driver.instantiate(self._graph)

    def _move(self, places: Sequence[int]) -> list[int]:
        """Write where inputs and outputs lie now; the launches that see something new."""
        old, self._places = self._places or [0] * len(places), list(places)
        changed = set()
        for port, (before, now) in enumerate(zip(old, places, strict=True)):
            if before != now:
                for n, position, behind in self._wanted[port]:
                    self._arguments[n].words[position] = now + behind
                    changed.add(n)
        return sorted(changed)
