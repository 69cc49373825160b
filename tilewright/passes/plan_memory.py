"""Memory planning: which bytes of one arena each intermediate value lives in, and when.

A value is alive from the step that writes it to the last step that reads it; two values may share
bytes if they are never alive together. With known sizes, buffers are placed largest first, each at
the lowest offset that is free during its life. With symbolic sizes, buffers share *slots*: the code
computes each slot's size as the greatest of what it holds, and offsets as running sums.

The peak is reported beside its lower bound, the most bytes that are alive at one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, as_int, const, maximum
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.core.node import node

ALIGNMENT = 64
# What symbolic sizes are taken to be when slots are chosen; any value gives a correct plan.
TYPICAL_SIZE = 128


@node
class Lifetime:
    """A buffer to be placed: its size in bytes and the first and last step at which it is alive."""

    name: str
    size: Expr
    first: int
    last: int


@node
class MemoryPlan:
    """Offsets by buffer name, and the arena's size, as expressions over the symbolic sizes."""

    offsets: Mapping[str, Expr]
    peak: Expr
    lower_bound: int
    typical_peak: int

    @property
    def overhead(self) -> float:
        """Peak over lower bound; with symbolic sizes, at a typical size."""
        return self.typical_peak / self.lower_bound if self.lower_bound else 1.0


def plan_memory(buffers: Sequence[Lifetime]) -> MemoryPlan:
    """Place every buffer."""
    aligned = [Lifetime(b.name, _align(b.size), b.first, b.last) for b in buffers]
    symbols = {s for b in aligned for s in free_vars(b.size)}
    typical = dict.fromkeys(symbols, TYPICAL_SIZE)
    sizes = {b.name: evaluate(b.size, typical) for b in aligned}
    bound = _lower_bound(aligned, sizes)
    if symbols:
        offsets, peak = _slots(aligned, sizes)
    else:
        places = _first_fit(aligned, sizes)
        offsets = {name: const(place) for name, place in places.items()}
        peak = const(max((places[b.name] + sizes[b.name] for b in aligned), default=0))
    return MemoryPlan(offsets, peak, bound, evaluate(peak, typical))


def _align(size: Expr) -> Expr:
    return simplify((size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT)


def _overlap(a: Lifetime, b: Lifetime) -> bool:
    return a.first <= b.last and b.first <= a.last


def _lower_bound(buffers: Sequence[Lifetime], sizes: Mapping[str, int]) -> int:
    steps = {b.first for b in buffers}
    return max(
        (sum(sizes[b.name] for b in buffers if b.first <= step <= b.last) for step in steps),
        default=0,
    )


def _first_fit(buffers: Sequence[Lifetime], sizes: Mapping[str, int]) -> dict[str, int]:
    """Largest first, at the lowest offset free during the buffer's life."""
    places: dict[str, int] = {}
    placed: list[Lifetime] = []
    for b in sorted(buffers, key=lambda b: (-sizes[b.name], b.first, b.name)):
        taken = sorted(
            (places[o.name], places[o.name] + sizes[o.name]) for o in placed if _overlap(b, o)
        )
        offset = 0
        for start, end in taken:
            if offset + sizes[b.name] <= start:
                break
            offset = max(offset, end)
        places[b.name] = offset
        placed.append(b)
    return places


def _slots(buffers: Sequence[Lifetime], sizes: Mapping[str, int]) -> tuple[dict[str, Expr], Expr]:
    """Buffers that are never alive together share a slot; the best filled slot is taken first."""
    slots: list[list[Lifetime]] = []
    for b in sorted(buffers, key=lambda b: (-sizes[b.name], b.first, b.name)):
        free = [s for s in slots if not any(_overlap(b, o) for o in s)]
        if free:
            min(free, key=lambda s: sizes[s[0].name]).append(b)
        else:
            slots.append([b])
    offsets: dict[str, Expr] = {}
    top: Expr = const(0)
    for slot in slots:
        offsets.update((b.name, top) for b in slot)
        top = simplify(top + _greatest(slot))
    return offsets, top


def _greatest(slot: Sequence[Lifetime]) -> Expr:
    """The size of a slot: the maximum over the distinct sizes in it, constants folded."""
    fixed = max((as_int(b.size) or 0 for b in slot), default=0)
    result: Expr = const(fixed)
    for size in dict.fromkeys(b.size for b in slot if as_int(b.size) is None):
        result = size if as_int(result) == 0 else maximum(result, size)
    return result
