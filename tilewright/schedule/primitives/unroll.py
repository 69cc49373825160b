"""`unroll(loop)`: repeat the body of a loop in the code.

    for i in serial(2) { y[i] = x[i] }    →    y[0] = x[0]
                                               y[1] = x[1]

Finalization does this; until then the loop is `for i in unroll(2)`.
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Func
from tilewright.schedule.loop_kind import check_constant, with_kind
from tilewright.schedule.tree import loop_spine


def unroll(func: Func, loop: str) -> Func:
    """Repeat the body of a loop in the code; its extent must be constant."""
    spine = loop_spine(func, loop)
    check_constant(func, spine, "unroll")
    return with_kind(func, spine, "unroll")
