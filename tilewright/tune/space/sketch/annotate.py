"""Annotation of a sketch: compute location, vectorization and parallel loops of what is left.

Blocks that no rule has scheduled come here, the last one first, so that each can be placed in the
loops of its readers.
"""

from __future__ import annotations

from tilewright.arith.expr import Var
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import For
from tilewright.ir.loop.walk import blocks, loops_above
from tilewright.schedule.analysis.blocks import (
    is_simple,
    loop_of,
    op_count,
    reductions,
    spatial,
    typical_extent,
)
from tilewright.schedule.builtin.cpu.injective import UNROLL, vectors_together
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.builtin.cpu.simd_reduction import reduce_in_lanes
from tilewright.tune.space.sketch.state import Sketch, reuses

ROOT = "root"


def annotate(sketch: Sketch) -> None:
    """Place and lay out every block that is still pending."""
    order = [b.name for b in sketch.graph.blocks]
    pending = sorted(sketch.pending, key=order.index, reverse=True)
    simple = [name for name in pending if is_simple(sketch.block(name))]
    alone = [name for name in simple if sketch.pending[name] != "inside"]
    at_root = [name for name in alone if _place(sketch, name) == ROOT]
    for name in simple:
        nest = name
        if sketch.pending[name] == "rfactor":
            nest = _sum_in_lanes(sketch, name, name in at_root)
        else:
            _in_vectors(sketch, name)
        if name in at_root and is_parallel(sketch.sch, name, op_count(sketch.block(name))):
            _share(sketch, nest)


def _place(sketch: Sketch, name: str) -> str:
    """Compute a block at a loop around all its readers, or leave it where it is.

    By default that is the outermost loop, unless tiles would have it computed again and again.
    """
    sch, block = sketch.sch, sketch.block(name)
    readers = sketch.readers(block)
    if sketch.is_output(block) or not readers:
        return ROOT
    around = [loops_above(sch.func, r) for r in readers]
    shared = [same[0] for same in zip(*around, strict=False) if len({*map(id, same)}) == 1]
    numbered = {v for r in readers for it in spatial(r) for v in free_vars(it.binding)}
    options = [f.name for f in shared if f.kind == "serial" and f.name in numbered]
    near = options[:1] if not any(map(reuses, readers)) else []
    default = next(iter(near), ROOT)
    at = sch.choose(f"{name}.location", default, lambda: (ROOT, *options))
    if at != ROOT:
        sch.compute_at(name, at)
    return at


def _own(sketch: Sketch, name: str) -> list[str]:
    """The loops that hold nothing but one block, outermost first."""
    around = loops_above(sketch.sch.func, name)
    return [f.name for f in around if len(list(blocks(f))) == 1 and f.kind == "serial"]


def _sum_in_lanes(sketch: Sketch, name: str, at_root: bool) -> str:
    """A reduction along its row: one partial result a lane; the block that has the rows then."""
    sch, block = sketch.sch, sketch.block(name)
    axis, lanes = reductions(block)[-1], sketch.lanes(block)
    nest = name
    if at_root and spatial(block):
        nest = sch.cache_write(name, "local")
        sch.compute_at(name, loop_of(spatial(sketch.block(nest))[-1]))
    most = max(1, typical_extent(axis.extent) // lanes)
    vectors = vectors_together(sch, name, min(UNROLL, most), axis.extent, lanes)
    reduce_in_lanes(sch, name, axis.name, vectors * lanes, lanes)
    return nest


def _in_vectors(sketch: Sketch, name: str) -> None:
    """Lay the last axis over lanes, by default, and start a reduction before its first loop."""
    sch, block, own = sketch.sch, sketch.block(name), _own(sketch, name)
    sums = [f for f in own if f in {v for it in reductions(block) for v in free_vars(it.binding)}]
    column = spatial(block)[-1] if spatial(block) else None
    loop = column.binding if column is not None else None
    lanes = sketch.lanes(block)
    if column is not None and isinstance(loop, Var) and loop.name in own and lanes > 1:
        vectors = typical_extent(column.extent) // lanes and vectors_together(
            sch, name, 1, column.extent, lanes
        )
        if vectors and sch.choose(f"{name}.vectorise", True, lambda: (False, True)):
            panel, lane = sch.split(loop.name, [None, vectors * lanes])
            if sums:
                sch.reorder(panel, *sums, lane)
            sch.vectorize(lane)
    if sums and sketch.block(name).init is not None:
        sch.decompose_reduction(name, sums[0])


def _share(sketch: Sketch, name: str) -> None:
    """Parallelize the outermost spatial loops of a nest."""
    numbered = {v for it in spatial(sketch.block(name)) for v in free_vars(it.binding)}
    found: list[str] = []
    for loop in loops_above(sketch.sch.func, name):
        if loop.name not in numbered or loop.kind != "serial":
            break
        found.append(loop.name)
        if not isinstance(loop.body, For):
            break
    if found:
        fuse_parallel(sketch.sch, name, found)
