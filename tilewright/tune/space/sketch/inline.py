"""Inline: a formula disappears into its readers.

One that only moves elements, or has a single reader that is no sum, always does; others are a
choice, as they are computed again for each reader.
"""

from __future__ import annotations

from tilewright.schedule.analysis.blocks import is_copy, is_simple, reductions
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch


def _can(sketch: Sketch, name: str) -> bool:
    block = sketch.block(name)
    plain = is_simple(block) and not reductions(block) and not sketch.is_output(block)
    return plain and bool(sketch.readers(block))


def _must(sketch: Sketch, name: str) -> bool:
    if not _can(sketch, name):
        return False
    readers = sketch.readers(sketch.block(name))
    return len(readers) == 1 and not reductions(readers[0]) and not is_copy(readers[0])


def _apply(sketch: Sketch, name: str) -> None:
    sketch.sch.inline(name)


ALWAYS = SketchRule("inline", _must, _apply, alone=True)
INLINE = SketchRule("inline", _can, _apply)
