"""Cache write: a result that nothing takes over is computed near, and copied out tile by tile."""

from __future__ import annotations

from tilewright.tune.space.sketch.fused_tiling import fuse_tile
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch, reuses
from tilewright.tune.space.sketch.tiling import consumer_of


def _applies(sketch: Sketch, name: str) -> bool:
    block = sketch.block(name)
    return reuses(block) and consumer_of(sketch, block) is None


def _apply(sketch: Sketch, name: str) -> None:
    copy = sketch.sch.cache_write(name, "local")
    sketch.pending[copy] = "plain"
    fuse_tile(sketch, name, copy)


CACHE_WRITE = SketchRule("cache-write", _applies, _apply)
