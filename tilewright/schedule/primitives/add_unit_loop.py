"""`add_unit_loop(first)`: wrap the nests from a block on in a loop of one iteration.

    for i in serial(M) { ... }              for once in serial(1) {
    for j in serial(N) { ... }         →      for i in serial(M) { ... }
                                              for j in serial(N) { ... }
                                            }

Bound to a GPU's grid, it makes the nests run one after another in one thread block. Without an
argument it wraps all nests. The loop is called `once`.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import const
from tilewright.ir.loop.nodes import Alloc, For, Func, Seq, Stmt
from tilewright.ir.loop.walk import seq
from tilewright.schedule.tree import block_spine, check_loop_free, outermost

LOOP = "once"


def add_unit_loop(func: Func, first: str = "") -> Func:
    """Put a loop of one iteration around all nests from that of block `first` on."""
    check_loop_free(func, LOOP)
    nest = outermost(block_spine(func, first))[-1] if first else None

    def around(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Alloc):
            return replace(stmt, body=around(stmt.body))
        if isinstance(stmt, Seq) and nest in stmt.stmts:
            n = stmt.stmts.index(nest)
            return seq(*stmt.stmts[:n], For(LOOP, const(1), "serial", seq(*stmt.stmts[n:])))
        return For(LOOP, const(1), "serial", stmt)

    return replace(func, body=around(func.body))


def add_unit_loop_name(func: Func, first: str = "") -> str:
    """The name of the loop."""
    return LOOP
