"""Dependences between launches, so that independent ones run concurrently in a CUDA graph.

A launch depends on those before it that write what it reads (RAW) or writes (WAW), or read what it
writes (WAR). What is compared are byte ranges, so that buffers which overlap in memory count.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

Range = tuple[int, int]
"""The begin and end of a byte range."""


@dataclass(frozen=True)
class BufferAccess:
    """The memory that a launch reads and writes."""

    reads: tuple[Range, ...]
    writes: tuple[Range, ...]


def dependences(accesses: Sequence[BufferAccess]) -> list[list[int]]:
    """For each launch, in order, the ones it waits for, reduced to those that imply the rest."""
    return transitive_reduction(_conflicts(accesses))


def transitive_reduction(earlier: Sequence[set[int]]) -> list[list[int]]:
    """Leave out edges that others imply; `earlier` has the predecessors of each launch."""
    before: list[int] = []  # the ancestors of each launch, a bit each
    found = []
    for those in earlier:
        implied, kept = 0, []
        # the last first: what another implies comes before it
        for one in sorted(those, reverse=True):
            if not implied >> one & 1:
                kept.append(one)
                implied |= before[one] | 1 << one
        before.append(implied)
        found.append(kept[::-1])
    return found


def _conflicts(accesses: Sequence[BufferAccess]) -> list[set[int]]:
    """For each launch, the earlier ones with which it has a hazard, the nearest of each kind."""
    # No write begins or ends between two of these, so that each segment has one last writer.
    cuts = sorted({end for access in accesses for r in access.writes for end in r})
    writer: list[set[int]] = [set() for _ in range(len(cuts) + 1)]
    readers: list[set[int]] = [set() for _ in writer]
    found = []
    for number, access in enumerate(accesses):
        those: set[int] = set()
        for piece in _pieces(access.reads, cuts):
            those |= writer[piece]
            readers[piece].add(number)
        for piece in _pieces(access.writes, cuts):
            those |= writer[piece] | readers[piece]
            writer[piece], readers[piece] = {number}, set()
        found.append(those - {number})
    return found


def _pieces(ranges: Sequence[Range], cuts: Sequence[int]) -> list[int]:
    """The segments between cuts that ranges touch; segment `n` ends at cut `n`."""
    return [
        piece
        for start, end in ranges
        if start < end
        for piece in range(bisect_right(cuts, start), bisect_left(cuts, end) + 1)
    ]
