"""What a rule is: a condition on a block, and what becomes of the block.

Rules are asked in the order of their table, for one block after another, the last one first. Where
several apply, which to take is a decision; a rule that is `alone` leaves no choice.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.core.node import node
from tilewright.tune.space.sketch.state import Sketch


@node
class SketchRule:
    """A way to treat a block, known by its name."""

    name: str
    applies: Callable[[Sketch, str], bool]
    apply: Callable[[Sketch, str], None]
    alone: bool = False
