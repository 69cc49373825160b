"""Memory planning: which bytes of one arena each intermediate value lives in, and when.

A value is alive from the step that writes it to the last step that reads it; two values may share
bytes if they are never alive together. Buffers are placed largest first, each at the lowest offset
that is free during its live range. With symbolic sizes the order is that of typical sizes, and the
model's native code assigns the offsets, which knows the sizes when it runs: the plan then lists the
pairs of buffers that must not overlap, and offsets are variables.

Where so many values are live at once that the list of pairs would be too long, values of equal size
share slots instead, which are adjacent.

The peak is reported beside its lower bound, the largest number of bytes that are live at one step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from itertools import accumulate

from tilewright.arith.evaluate import evaluate
from tilewright.arith.expr import Expr, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.core.node import node
from tilewright.ir.types import TYPICAL_SIZE
from tilewright.runtime.arena_layout import first_fit

# Of every buffer, in bytes: a cache line, and the widest vector.
ALIGNMENT = 64
# So many others may be alive with a buffer on average; models have a handful.
MAX_MEAN_OVERLAPS = 64


@node
class LiveRange:
    """A buffer to be placed: its size in bytes and the first and last step at which it is alive."""

    name: str
    size: Expr
    first: int
    last: int


Conflicts = tuple[tuple[int, ...], ...] | None


@node
class RuntimePlacement:
    """Buffers to be placed at run time, in order: their sizes, and the earlier ones to keep off.

    Without conflicts each keeps off all others: they lie one behind the other.
    """

    sizes: tuple[Expr, ...]
    conflicts: Conflicts

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
    placement: RuntimePlacement | None = None

    @property
    def overhead(self) -> float:
        """Peak over lower bound."""
        return self.peak / self.lower_bound if self.lower_bound else 1.0


def plan_memory(buffers: Sequence[LiveRange], no_reuse_up_to: int = 0) -> MemoryPlan:
    """Place every buffer; one of at most `no_reuse_up_to` bytes shares them with no other.

    What shares no bytes may be computed in another order, and at the same time.
    """
    small = [b for b in buffers if 0 < (as_int(b.size) or 0) <= no_reuse_up_to]
    if not small or any(free_vars(b.size) for b in buffers):
        return _plan(buffers)
    names = {b.name for b in small}
    plan = _plan([b for b in buffers if b.name not in names])
    sizes = {b.name: evaluate(_align(b.size), {}) for b in buffers}
    starts = list(accumulate((sizes[b.name] for b in small), initial=plan.peak))
    offsets = {b.name: const(start) for b, start in zip(small, starts, strict=False)}
    return MemoryPlan({**plan.offsets, **offsets}, starts[-1], _lower_bound(buffers, sizes))


def _plan(buffers: Sequence[LiveRange]) -> MemoryPlan:
    aligned = [LiveRange(b.name, _align(b.size), b.first, b.last) for b in buffers]
    symbols = {s for b in aligned for s in free_vars(b.size)}
    typical = dict.fromkeys(symbols, TYPICAL_SIZE)
    sizes = {b.name: evaluate(b.size, typical) for b in aligned}
    ordered = sorted(aligned, key=lambda b: (-sizes[b.name], b.first, b.name))
    conflicts = _conflicts(ordered)
    slots = range(len(ordered)) if conflicts is not None else _slots(ordered)
    taken = {slot: b.size for slot, b in zip(slots, ordered, strict=True)}
    placement = RuntimePlacement(tuple(taken[i] for i in range(len(taken))), conflicts)
    values = [evaluate(size, typical) for size in placement.sizes]
    places = first_fit(values, conflicts)
    peak = max((p + size for p, size in zip(places, values, strict=True)), default=0)
    bound = _lower_bound(aligned, sizes)
    offsets = placement.offsets if symbols else tuple(map(const, places))
    found = {b.name: offsets[slot] for slot, b in zip(slots, ordered, strict=True)}
    return MemoryPlan(found, peak, bound, placement if symbols else None)


def _align(size: Expr) -> Expr:
    return simplify((size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT)


def _conflicts(ordered: Sequence[LiveRange]) -> Conflicts:
    """For each buffer the earlier ones that live at the same time, `None` if they are too many.

    One walk over the steps: few buffers are alive at once, however many there are in all.
    """
    pairs = 0
    found: list[set[int]] = [set() for _ in ordered]
    alive: set[int] = set()
    for i in sorted(range(len(ordered)), key=lambda i: ordered[i].first):
        alive = {j for j in alive if ordered[j].last >= ordered[i].first}
        pairs += len(alive)
        if pairs > MAX_MEAN_OVERLAPS * len(ordered):
            return None
        for j in alive:
            found[max(i, j)].add(min(i, j))
        alive.add(i)
    return tuple(tuple(sorted(others)) for others in found)


def _slots(buffers: Sequence[LiveRange]) -> list[int]:
    """A slot for each buffer, which others of its size have before and after it."""
    slots = [0] * len(buffers)
    count = 0
    free: dict[Expr, list[int]] = {}
    busy: list[tuple[int, int, Expr]] = []
    for i in sorted(range(len(buffers)), key=lambda i: buffers[i].first):
        b = buffers[i]
        while busy and busy[0][0] < b.first:
            _, slot, size = heappop(busy)
            free.setdefault(size, []).append(slot)
        if free.get(b.size):
            slots[i] = free[b.size].pop()
        else:
            slots[i], count = count, count + 1
        heappush(busy, (b.last, slots[i], b.size))
    return slots


def _lower_bound(buffers: Sequence[LiveRange], sizes: Mapping[str, int]) -> int:
    """The most bytes alive at one step."""
    change: dict[int, int] = {}
    for b in buffers:
        change[b.first] = change.get(b.first, 0) + sizes[b.name]
        change[b.last + 1] = change.get(b.last + 1, 0) - sizes[b.name]
    return max(accumulate(change[step] for step in sorted(change)), default=0)
