"""The launches of a run, recorded with placeholders for its inputs, outputs and arena.

Placeholders are numbers that are no address and no size. So it is known which kernel parameters are
addresses of these buffers, and only those change when a call's arrays lie elsewhere.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilewright.runtime.cuda.kernel_args import Arguments, TensorMapArg
from tilewright.runtime.cuda.launch_hazards import BufferAccess, Range
from tilewright.runtime.size_expr import evaluate

_FIRST, _EACH = 1 << 60, 1 << 44
MAX_ROWS = 256
"""Rows of a strided buffer that get byte ranges of their own."""


def placeholders(count: int) -> list[int]:
    """Placeholders for the addresses of buffers, far from each other and all others."""
    return [_FIRST + n * _EACH for n in range(count)]


@dataclass(frozen=True)
class RecordedLaunch:
    """A launch: the kernel, its shape and parameters, and the memory it reads and writes."""

    function: int
    shape: tuple[int, int, int]
    words: tuple[int, ...]
    name: str
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
        about = (self._access(name, words), arguments.matrices)
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


def uses(launches: Sequence[RecordedLaunch]) -> dict[int, list[tuple[int, int, int]]]:
    """For each placeholder its uses: the launch, the parameter, the offset from the buffer."""
    found: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for n, recorded in enumerate(launches):
        for position, word in enumerate(recorded.words):
            if word >= _FIRST:
                port, behind = divmod(word - _FIRST, _EACH)
                found[port].append((n, position, behind))
    return found


def placed(recorded: RecordedLaunch, places: Sequence[int]) -> tuple[int, ...]:
    """The parameters of a launch with buffers at these addresses."""
    words = list(recorded.words)
    for port, those in uses([recorded]).items():
        for _, position, behind in those:
            words[position] = places[port] + behind
    return tuple(words)
