"""First fit: the offsets of buffers in the arena, from their sizes and conflicts.

The compiler plans with it, and a GPU run whose sizes are symbolic; on a CPU the native `tw_place`
does the same (`codegen/host/arena_layout.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from tilewright.runtime.size_expr import evaluate

Conflicts = Sequence[Sequence[int]] | None
"""For each buffer the earlier ones that live at the same time; `None`: all of them."""


def first_fit(sizes: Sequence[int], conflicts: Conflicts) -> list[int]:
    """Each buffer at the lowest offset that keeps off the earlier ones it conflicts with.

    A buffer that overlaps another cannot start before that one's end, so it is moved there, until
    it overlaps none.
    """
    if conflicts is None:
        return list(accumulate(sizes, initial=0))[:-1]
    offsets: list[int] = []
    for size, others in zip(sizes, conflicts, strict=True):
        offset, moved = 0, True
        while moved:
            moved = False
            for j in others:
                if offset < offsets[j] + sizes[j] and offsets[j] < offset + size:
                    offset, moved = offsets[j] + sizes[j], True
        offsets.append(offset)
    return offsets


def arena_layout(
    arena: int | Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[dict[str, int], int]:
    """The offsets of buffers by name, and the size of the arena, for the sizes of a run.

    A number is an arena that was planned already: its offsets are in the launches.
    """
    if isinstance(arena, int):
        return {}, arena
    needs = [evaluate(s, sizes) for s in arena["sizes"]]
    offsets = first_fit(needs, arena["conflicts"])
    total = max((start + size for start, size in zip(offsets, needs, strict=True)), default=0)
    return dict(zip(arena["names"], offsets, strict=True)), total
