"""Whether all steps of a schedule together keep every data dependence.

    check_trace(func, trace)     a `LegalityError`, as of `legality.check`

Steps that only move blocks, one after another, are checked as one: what counts is where they lead.
A step that changes blocks ends such a run. Fused loops are taken apart again before they are looked
at: the order is the same, and divisions are what isl has most trouble with.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import loops
from tilewright.schedule.legality.dependences import check
from tilewright.schedule.primitives.split import split
from tilewright.schedule.primitives.table import PRIMITIVES
from tilewright.schedule.schedule import Schedule
from tilewright.schedule.trace import Step, Trace

# Steps that change how a loop runs or where a buffer is, and no block.
NOTES = ("annotate", "set_scope", "unroll")
# Steps that move a part of a block into a block of its own.
DIVIDING = ("decompose_reduction",)


def check_trace(func: Func, trace: Trace) -> None:
    """Raise an error if the steps of a trace, replayed on `func`, violate a dependence."""
    run = _Run(func)
    for step in trace:
        run.apply(step)
    run.check()


class _Run:
    """A schedule being replayed: what was there before the last steps that only moved blocks."""

    def __init__(self, func: Func) -> None:
        self.sch = Schedule(func)
        self.start = func
        # The extents that fused loops are a product of, but for the first.
        self.fused: dict[str, tuple[int | None, ...]] = {}

    def apply(self, step: Step) -> None:
        """Apply a step, and check what came before if this is none that moves blocks."""
        row = PRIMITIVES.get(step.name)
        changes = row is not None and not row.moves and step.name not in NOTES
        if changes:
            self.check()
        extents = {f.name: as_int(f.extent) for f in loops(self.sch.func.body)}
        made = self.sch.apply(step)
        if step.name == "fuse":
            self.fused[made] = tuple(extents[str(name)] for name in step.args[1:])
        if step.name in DIVIDING:
            self.check()
        elif changes:
            self.start = self.sch.func

    def check(self) -> None:
        """Check the steps since the last check."""
        if self.start is not self.sch.func:
            check(_taken_apart(self.start, self.fused), _taken_apart(self.sch.func, self.fused))
        self.start = self.sch.func


def _taken_apart(func: Func, fused: Mapping[str, tuple[int | None, ...]]) -> Func:
    """The function with loops that were fused as they were before, where sizes are known."""
    names = {loop.name for loop in loops(func.body)}
    for name, inner in fused.items():
        if name in names and None not in inner:
            func = split(func, name, (None, *inner))
    return func
