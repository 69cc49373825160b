"""`bind(loop, "grid" | "thread" | "warp" | "allreduce")`: map a loop to the parallelism of a GPU.

    for i.0 in serial(M // 256) {              for i.0 in grid(M // 256) {
      for i.1 in serial(256) { ... }      →      for i.1 in thread(256) { ... }
    }                                          }

Each iteration of a grid loop is a thread block. The iterations of a thread loop are distributed
over the threads of the block; in nested thread loops the innermost index varies fastest with the
thread number. Several thread loops may follow one another in a grid loop; the block executes them
in order. Each iteration of a warp loop is executed by all threads of a warp, by warp-level
instructions.

The iterations must be independent; see `schedule/loop_kind.py`. The exception is an allreduce loop:
a reduction of one value of each thread, whose result every thread gets.
"""

from __future__ import annotations

from tilewright.arith.expr import Var
from tilewright.ir.loop.nodes import Block, For, Func
from tilewright.schedule.analysis.reduction import reduction_of
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.loop_kind import check_constant, check_independent, with_kind
from tilewright.schedule.tree import Spine, loop_spine, loops_of, target_loop

LEVELS = ("grid", "thread", "warp", "allreduce")


def bind(func: Func, loop: str, level: str) -> Func:
    """Run the iterations of a loop on thread blocks, or on the threads or warps of a block."""
    spine = loop_spine(func, loop)
    if level not in LEVELS:
        message = f"no level {level!r}"
        raise refuse(func, "bind.level", message, spine[-1], help=f"one of {', '.join(LEVELS)}")
    _check_nesting(func, spine, level)
    if level != "grid":
        check_constant(func, spine, "bind")
    if level == "allreduce":
        _check_reduction(func, spine)
    else:
        check_independent(func, spine, "bind")
    return with_kind(func, spine, level)


def _check_reduction(func: Func, spine: Spine) -> None:
    """An allreduce is one whole reduction."""
    loop = target_loop(spine)
    block = loop.body
    reduced = [it for it in block.iters if it.kind == "R"] if isinstance(block, Block) else []
    if not isinstance(block, Block) or [it.binding for it in reduced] != [Var(loop.name)]:
        message = f"loop {loop.name} is not all of one reduction"
        raise refuse(func, "bind.allreduce", message, loop)
    reduction_of(func, block, "bind")


def _check_nesting(func: Func, spine: Spine, level: str) -> None:
    """A grid loop is in no bound loop; all bound loops are in serial or bound loops only."""
    loop = target_loop(spine)
    around = [outer for outer in loops_of(spine[:-1]) if outer.kind in LEVELS]
    wrong = around[0] if level == "grid" and around else _other_kind(spine)
    if wrong is not None:
        message = (
            f"loop {loop.name} cannot be bound to {level} inside {wrong.kind} loop {wrong.name}"
        )
        raise refuse(func, "bind.nesting", message, loop)


def _other_kind(spine: Spine) -> For | None:
    kinds = ("serial", *LEVELS)
    return next((outer for outer in loops_of(spine[:-1]) if outer.kind not in kinds), None)
