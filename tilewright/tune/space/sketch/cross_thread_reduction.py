"""Cross-thread reduction: on a GPU, threads of a block sum up a part each, and then together.

It is for reductions with fewer results than the machine has threads. The loop of partial results is
bound to threads; how they are combined is the business of code generation.
"""

from __future__ import annotations

from math import prod

from tilewright.ir.loop.annotations import BIND
from tilewright.schedule.analysis.blocks import (
    is_simple,
    loop_of,
    reductions,
    spatial,
    typical_extent,
)
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch

# Results that keep a GPU busy, one thread each.
MIN_BUSY_THREADS = 4096
# Threads of one reduction.
THREADS = (32, 64, 128, 256)


def _applies(sketch: Sketch, name: str) -> bool:
    block = sketch.block(name)
    if not (sketch.structure.binds and is_simple(block) and reductions(block)):
        return False
    results = prod(typical_extent(it.extent) for it in spatial(block))
    return results < MIN_BUSY_THREADS and typical_extent(reductions(block)[-1].extent) >= THREADS[0]


def _apply(sketch: Sketch, name: str) -> None:
    sch = sketch.sch
    last = loop_of(reductions(sketch.block(name))[-1])
    count = sch.choose(f"{name}.threads", THREADS[0], lambda: THREADS)
    _, thread = sch.split(last, [None, count])
    partial = sch.rfactor(name, thread)
    sch.annotate(thread, BIND.key, sketch.structure.binds[-1])
    for part in (partial, name):
        block = sketch.block(part)
        if block.init is not None:
            sums = {loop_of(it) for it in reductions(block)}
            first = next(loop for loop in sketch.loops(part) if loop in sums)
            sch.decompose_reduction(part, first)


CROSS_THREAD = SketchRule("cross-thread", _applies, _apply)
