"""Skip: the block stays a nest of its own, to be placed and put in vectors in the end."""

from __future__ import annotations

from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch


def _applies(sketch: Sketch, name: str) -> bool:
    return True


def _apply(sketch: Sketch, name: str) -> None:
    sketch.pending[name] = "plain"


SKIP = SketchRule("skip", _applies, _apply)
