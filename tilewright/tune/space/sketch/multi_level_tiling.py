"""Multi-level tiling: a block that reuses what it reads, in levels; its result goes to memory."""

from __future__ import annotations

from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch, reuses
from tilewright.tune.space.sketch.tiling import finish, tile


def _applies(sketch: Sketch, name: str) -> bool:
    return reuses(sketch.block(name))


def _apply(sketch: Sketch, name: str) -> None:
    finish(sketch, tile(sketch, name), 1)


MULTI_LEVEL_TILING = SketchRule("multi-level-tiling", _applies, _apply)
