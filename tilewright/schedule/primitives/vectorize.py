"""`vectorize(loop)`: run all iterations of a loop as one vector operation.

    for i in serial(4) { y[i] = x[i] }    →    for i in vectorize(4) { y[i] = x[i] }

The extent must be constant and the iterations independent; see `schedule/loop_kind.py`.
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Func
from tilewright.schedule.loop_kind import check_constant, check_independent, with_kind
from tilewright.schedule.tree import loop_spine


def vectorize(func: Func, loop: str) -> Func:
    """Run all iterations of a loop as one vector operation; its extent must be constant."""
    spine = loop_spine(func, loop)
    check_constant(func, spine, "vectorize")
    check_independent(func, spine, "vectorize")
    return with_kind(func, spine, "vectorize")
