"""Tiling with consumer fusion: what takes the result over is computed on each finished tile."""

from __future__ import annotations

from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch, reuses
from tilewright.tune.space.sketch.tiling import consumer_of, finish, tile, write_out


def _applies(sketch: Sketch, name: str) -> bool:
    block = sketch.block(name)
    return reuses(block) and consumer_of(sketch, block) is not None


def _apply(sketch: Sketch, name: str) -> None:
    consumer = consumer_of(sketch, sketch.block(name))
    assert consumer is not None
    fuse_tile(sketch, name, consumer)


def fuse_tile(sketch: Sketch, name: str, consumer: str) -> None:
    """Tile a block, and compute its consumer at the end of a spatial level before the sums."""
    sch = sketch.sch
    tiled = tile(sketch, name)
    before = tiled.kinds.index("R")
    level = sch.choose(f"{name}.at", before, lambda: range(1, before + 1))
    write_out(sketch, consumer, tiled.spatial(level - 1)[-1])
    sch.set_scope(sketch.block(name).writes[0].buffer, "local")
    finish(sketch, tiled, level)


FUSED_TILING = SketchRule("fused-tiling", _applies, _apply)
