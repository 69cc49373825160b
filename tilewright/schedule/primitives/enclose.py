"""`enclose()`: everything that a function does becomes the one iteration of a loop, `once`.

    for i in serial(M) { ... }              for once in serial(1) {
    for j in serial(N) { ... }         →      for i in serial(M) { ... }
                                              for j in serial(N) { ... }
                                            }

Bound to the grid of a GPU, the nests in it run in one block of threads, one after the other.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import const
from tilewright.ir.loop.nodes import Alloc, For, Func, Stmt
from tilewright.schedule.tree import check_loop_free

LOOP = "once"


def enclose(func: Func) -> Func:
    """Put a loop that runs once around all nests."""
    check_loop_free(func, LOOP)

    def around(stmt: Stmt) -> Stmt:
        if isinstance(stmt, Alloc):
            return replace(stmt, body=around(stmt.body))
        return For(LOOP, const(1), "serial", stmt)

    return replace(func, body=around(func.body))


def enclose_name(func: Func) -> str:
    """The name of the loop."""
    return LOOP
