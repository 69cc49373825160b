"""The layout of the arena where sizes are symbolic: what the native `tw_place` does on a CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tilewright.runtime.size_tree import value_of


def lay_out(arena: int | Mapping[str, Any], sizes: Mapping[str, int]) -> tuple[dict[str, int], int]:
    """The offsets of buffers by name, and the size of all; known ones are in the launches already.

    Each buffer lies at the lowest place that keeps off the conflicting ones before it.
    """
    if isinstance(arena, int):
        return {}, arena
    needs = [value_of(s, sizes) for s in arena["sizes"]]
    starts: list[int] = []
    for number, size in enumerate(needs):
        conflicts = arena["conflicts"]
        others = range(number) if conflicts is None else conflicts[number]
        taken = sorted((starts[o], starts[o] + needs[o]) for o in others)
        start = 0
        for first, end in taken:
            if start < end and first < start + size:
                start = end
        starts.append(start)
    total = max((start + size for start, size in zip(starts, needs, strict=True)), default=0)
    return dict(zip(arena["names"], starts, strict=True)), total
