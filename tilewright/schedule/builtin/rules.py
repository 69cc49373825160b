"""The rules by which built-in schedules are chosen, and what a chosen one gives."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.loop.nodes import Func
from tilewright.schedule.trace import Trace

# The rules, and the structure that each is for.
RULES = {
    "injective": "no reduction: everything inlined into the last block",
    "staged": "no reduction, formulas chosen by short axes: next to who reads them",
    "matrix": "one product of bf16, where the machine has a unit for matrices",
    "pairs": "one product of bf16, where the machine multiplies pairs in vectors",
    "windows": "one reduction over windows of single channels: depthwise, pooling",
    "tile": "one reduction along other axes than the last, then elementwise blocks",
    "rows": "reductions along the last axis, every block sharing the rows",
    "nests": "anything else: each nest for itself",
    "attention": "a loop of independent iterations, each several nests with sums",
    "recurrence": "a loop of dependent iterations, each several nests with sums",
    "opaque": "blocks that are not one store: rows in parallel",
    "tuned": "measured to be faster than the built-in schedule",
    "override": "its loops were given in a file",
    "sketch": "derived block by block, by the rules of a search",
    "template": "written by hand, with knobs",
    "gpu.attention": "products around sums of lanes, in a loop of independent iterations",
    "gpu.general": "blocks that are not one store, or that share loops: each where it stands",
    "gpu.injective": "no reduction: everything inlined into the last block",
    "gpu.product": "one sum of products of two matrices: tiles in shared memory and registers",
    "gpu.rows": "reductions along the last axis, every block sharing the rows",
    "gpu.points": "one reduction and what follows it point by point: a thread a point",
    "gpu.windows": "one reduction over windows that overlap: a thread has several points",
    "gpu.steps": "a loop of dependent iterations, each shared by all multiprocessors",
    "gpu.nests": "anything else: each nest for itself, a thread a point",
}


@dataclass(frozen=True)
class ScheduledFunc:
    """A scheduled function, the trace that made it, and the rule that was chosen.

    `note` is what else `explain` has to say of the choice.
    """

    func: Func
    trace: Trace
    rule: str
    note: str = ""

    def __post_init__(self) -> None:
        """Every rule is described."""
        assert self.rule in RULES, self.rule
