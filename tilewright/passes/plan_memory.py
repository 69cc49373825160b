"""Memory planning: which bytes of one arena each intermediate value lives in, and when.

A value is alive from the step that writes it to the last step that reads it; two values may share
bytes if they are never alive together. Buffers are placed largest first, each at the lowest offset
that is free during its life. With symbolic sizes the order is that of typical sizes and the placing
itself is left to the model's native code, which knows the sizes when it runs: the plan then says
which buffers must not overlap, and offsets are variables.

The peak is reported beside its lower bound, the most bytes that are alive at one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, Var, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.core.node import node

ALIGNMENT = 64
# What symbolic sizes are taken to be when the order is chosen; any value gives a correct plan.
TYPICAL_SIZE = 128


@node
class Lifetime:
    """A buffer to be placed: its size in bytes and the first and last step at which it is alive."""

    name: str
    size: Expr
    first: int
    last: int


@node
class Placement:
    """Buffers to be placed at run time, in order: their sizes, and the earlier ones to keep off."""

    sizes: tuple[Expr, ...]
    conflicts: tuple[tuple[int, ...], ...]

    @property
    def offsets(self) -> tuple[Var, ...]:
        """The variables that stand for the buffers' offsets."""
        return tuple(Var(f"offset.{i}") for i in range(len(self.sizes)))


@node
class MemoryPlan:
    """Offsets by buffer name. `placement` is what is left to run time, `None` if all is known.

    `peak` and `lower_bound` are bytes; where sizes are symbolic, at a typical size.
    """

    offsets: Mapping[str, Expr]
    peak: int
    lower_bound: int
    placement: Placement | None = None

    @property
    def overhead(self) -> float:
        """Peak over lower bound."""
        return self.peak / self.lower_bound if self.lower_bound else 1.0


def plan_memory(buffers: Sequence[Lifetime]) -> MemoryPlan:
    """Place every buffer."""
    aligned = [Lifetime(b.name, _align(b.size), b.first, b.last) for b in buffers]
    symbols = {s for b in aligned for s in free_vars(b.size)}
    typical = dict.fromkeys(symbols, TYPICAL_SIZE)
    sizes = {b.name: evaluate(b.size, typical) for b in aligned}
    ordered = sorted(aligned, key=lambda b: (-sizes[b.name], b.first, b.name))
    conflicts = _conflicts(ordered)
    places = place_in_order([sizes[b.name] for b in ordered], conflicts)
    peak = max((p + sizes[b.name] for p, b in zip(places, ordered, strict=True)), default=0)
    bound = _lower_bound(aligned, sizes)
    if not symbols:
        known = {b.name: const(p) for p, b in zip(places, ordered, strict=True)}
        return MemoryPlan(known, peak, bound)
    placement = Placement(tuple(b.size for b in ordered), conflicts)
    variables = dict(zip((b.name for b in ordered), placement.offsets, strict=True))
    return MemoryPlan(variables, peak, bound, placement)


def place_in_order(sizes: Sequence[int], conflicts: Sequence[Sequence[int]]) -> list[int]:
    """Each buffer at the lowest offset that keeps off the earlier ones it conflicts with.

    A buffer that overlaps another cannot start before that one's end, so it is moved there, until
    it overlaps none. The native code does exactly this with the sizes of a run.
    """
    places: list[int] = []
    for size, others in zip(sizes, conflicts, strict=True):
        offset, moved = 0, True
        while moved:
            moved = False
            for j in others:
                if offset < places[j] + sizes[j] and places[j] < offset + size:
                    offset, moved = places[j] + sizes[j], True
        places.append(offset)
    return places


def _align(size: Expr) -> Expr:
    return simplify((size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT)


def _conflicts(ordered: Sequence[Lifetime]) -> tuple[tuple[int, ...], ...]:
    """For each buffer the earlier ones that live at the same time.

    One walk over the steps: few buffers are alive at once, however many there are in all.
    """
    found: list[set[int]] = [set() for _ in ordered]
    alive: set[int] = set()
    for i in sorted(range(len(ordered)), key=lambda i: ordered[i].first):
        alive = {j for j in alive if ordered[j].last >= ordered[i].first}
        for j in alive:
            found[max(i, j)].add(min(i, j))
        alive.add(i)
    return tuple(tuple(sorted(others)) for others in found)


def _lower_bound(buffers: Sequence[Lifetime], sizes: Mapping[str, int]) -> int:
    """The most bytes alive at one step."""
    change: dict[int, int] = {}
    for b in buffers:
        change[b.first] = change.get(b.first, 0) + sizes[b.name]
        change[b.last + 1] = change.get(b.last + 1, 0) - sizes[b.name]
    return max(accumulate(change[step] for step in sorted(change)), default=0)
