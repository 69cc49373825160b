"""The rules by which built-in schedules are chosen, and what a chosen one gives."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.ir.loop.nodes import Func
from tilewright.schedule.trace import Trace

# The rules, and the structure that each is for.
RULES = {
    "injective": "no reduction: everything inlined into the last block",
    "small_transforms": "no reduction, small unrolled transforms (Winograd), at their consumers",
    "amx": "one GEMM of bf16, on tiles of AMX",
    "bf16_dot": "one GEMM of bf16, by dot products of pairs",
    "depthwise": "one reduction over windows of single channels: depthwise convolution, pooling",
    "register_blocked": "one reduction along other axes than the last: register tiles, epilogue",
    "column_reduction": "one reduction down columns: a few rows at a time, epilogue on each panel",
    "short_rows": "one reduction of rows of two vectors at most: as many rows at once as lanes",
    "rowwise": "reductions along the last axis: softmax, norms; all blocks share the rows",
    "fallback": "anything else: each nest for itself",
    "attention": "a loop of independent iterations, each several nests with reductions",
    "recurrence": "a loop of dependent iterations, each several nests with reductions",
    "opaque": "blocks that are not one store: rows in parallel",
    "tuned": "measured to be faster than the built-in schedule",
    "override": "its loops were given in a file",
    "sketch": "derived block by block, by the rules of a search",
    "template": "written by hand, with knobs",
    "gpu.attention": "GEMMs around reductions over lanes, in a loop of independent iterations",
    "gpu.opaque": "blocks that are not one store, or that share loops: each where it stands",
    "gpu.injective": "no reduction: everything inlined into the last block",
    "gpu.gemm": "one GEMM with an epilogue: tiles in shared memory and registers",
    "gpu.rowwise": "reductions along the last axis: softmax, norms; all blocks share the rows",
    "gpu.thread_per_element": "one reduction and its elementwise epilogue: a thread per element",
    "gpu.columns": "one reduction down columns and its epilogue: threads along several rows",
    "gpu.depthwise": "one reduction over overlapping windows: a thread has several outputs",
    "gpu.recurrence": "a loop of dependent iterations, each spread over all SMs",
    "gpu.thread_blocks": "blocks that say what each thread does: loops around them are the grid",
    "gpu.fallback": "anything else: each nest for itself, a thread per element",
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
