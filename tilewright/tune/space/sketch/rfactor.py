"""R-factor: a long reduction in partial ones, a vector of them, that are combined in the end."""

from __future__ import annotations

from tilewright.schedule.analysis.blocks import (
    flat_stride,
    is_simple,
    reads_of,
    reductions,
    typical_extent,
)
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch


def _applies(sketch: Sketch, name: str) -> bool:
    block = sketch.block(name)
    if not (is_simple(block) and reductions(block) and block.init is not None):
        return False
    axis, graph = reductions(block)[-1], sketch.graph
    strides = [flat_stride(r, graph.buffers[r.buffer], axis.name) for r in reads_of(block)]
    return 1 in strides and typical_extent(axis.extent) >= sketch.lanes(block) > 1


def _apply(sketch: Sketch, name: str) -> None:
    sketch.pending[name] = "rfactor"


RFACTOR = SketchRule("rfactor", _applies, _apply)
