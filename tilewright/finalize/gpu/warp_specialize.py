"""Stage buffers and mbarriers of a warp-specialized mainloop.

    for b in grid(64) {                     for b in grid(64) {
      for k in serial(n)                      alloc T: f16[2 * size] @shared
          {pipeline_stages=2,                 alloc mbarriers: i64[4] @shared
           warp_specialized=1} {       →      for k in serial(n)
        alloc T: f16[size] @shared                {pipeline_stages=2, warp_specialized=1} {
        ...                                     ...

Each buffer gets its stages, and each stage two mbarriers: full and empty. Accesses remain those of
one k-tile, so that the loop keeps its sequential meaning; the emitter selects the stage
(`codegen/gpu/warp_specialized.py`).
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64
from tilewright.ir.loop.annotations import PIPELINE_STAGES, WARP_SPECIALIZED
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Stmt
from tilewright.ir.loop.thread_mapping import GRID
from tilewright.ir.loop.walk import loops, map_stmt

MBARRIERS = "mbarriers"
"""The mbarriers of the stages: whether each is full, and whether it is empty."""


def multi_buffer(func: Func) -> Func:
    """`func` with the stages of its warp-specialized mainloops."""

    def rewritten(stmt: Stmt) -> Stmt:
        if (
            isinstance(stmt, For)
            and stmt.kind == GRID
            and (mainloop := mainloop_of(stmt)) is not None
        ):
            return replace(stmt, body=_with_stages(stmt.body, PIPELINE_STAGES.of(mainloop)))
        return map_stmt(stmt, rewritten)

    return replace(func, body=rewritten(func.body))


def mainloop_of(stmt: Stmt) -> For | None:
    """The warp-specialized mainloop in a statement, if it has one."""
    return next((s for s in loops(stmt) if WARP_SPECIALIZED.is_on(s)), None)


def _with_stages(body: Stmt, stages: int) -> Stmt:
    shared: list[Buffer] = []

    def taken(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Alloc) and stmt.buffer.scope == "shared":
            shared.append(stmt.buffer)
            return taken(stmt.body)
        return map_stmt(stmt, taken)

    made = taken(body)
    count = const(2 * stages * len(shared))  # full and empty
    made = Alloc(Buffer(MBARRIERS, I64, (count,), "shared"), made)
    for b in reversed(shared):
        made = Alloc(replace(b, shape=(simplify(b.shape[0] * stages),)), made)
    return made
