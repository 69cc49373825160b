"""Room for what threads apart copy ahead of others, and for the places that count it.

    for b in grid(64) {                     for b in grid(64) {
      for k in serial(n) {apart=2} {          alloc T: f16[2 * size] @shared
        alloc T: f16[size] @shared            alloc apart.counter: i64[4] @shared
        ...                            →      for k in serial(n) {apart=2} {

Accesses stay those of one step: which step's room they mean, the emitter says
(`codegen/gpu/warp_specialized.py`), so that the loop still means what it says.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import const
from tilewright.arith.simplify import simplify
from tilewright.core.dtypes import I64
from tilewright.ir.loop.nodes import Alloc, Buffer, For, Func, Stmt
from tilewright.ir.loop.thread_mapping import APART, GRID
from tilewright.ir.loop.walk import loops, map_stmt

COUNTER = "apart.counter"
"""The places that count what is copied, and what is done with."""


def make_room(func: Func) -> Func:
    """`func` with room for several steps of what is copied apart."""

    def rewritten(stmt: Stmt) -> Stmt:
        if isinstance(stmt, For) and stmt.kind == GRID and (walk := walk_of(stmt)) is not None:
            return replace(stmt, body=_with_room(stmt.body, int(dict(walk.annotations)[APART])))
        return map_stmt(stmt, rewritten)

    return replace(func, body=rewritten(func.body))


def walk_of(stmt: Stmt) -> For | None:
    """The loop in a statement that others copy for."""
    return next((s for s in loops(stmt) if APART in dict(s.annotations)), None)


def _with_room(body: Stmt, stages: int) -> Stmt:
    shared: list[Buffer] = []

    def taken(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Alloc) and stmt.buffer.scope == "shared":
            shared.append(stmt.buffer)
            return taken(stmt.body)
        return map_stmt(stmt, taken)

    made = taken(body)
    # For each buffer and step whether it is there and whether it is free.
    places = const(2 * stages * len(shared))
    made = Alloc(Buffer(COUNTER, I64, (places,), "shared"), made)
    for b in reversed(shared):
        made = Alloc(replace(b, shape=(simplify(b.shape[0] * stages),)), made)
    return made
