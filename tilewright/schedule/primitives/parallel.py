"""`parallel(loop)`: run the iterations of a loop on several threads.

    for i in serial(M) { ... }    →    for i in parallel(M) { ... }

The iterations must be independent; see `schedule/loop_kind.py`.
"""

from __future__ import annotations

from tilewright.ir.loop.nodes import Func
from tilewright.schedule.loop_kind import check_independent, with_kind
from tilewright.schedule.tree import loop_spine


def parallel(func: Func, loop: str) -> Func:
    """Run the iterations of a loop on several threads."""
    spine = loop_spine(func, loop)
    check_independent(func, spine, "parallel")
    return with_kind(func, spine, "parallel")
