"""Tensorize: a product whose innermost tile an instruction of the machine computes.

    c[j] += a[k] * b[j, k]        for some lanes j, and as many k as a lane takes at once

Such instructions are rows of `schedule/intrin`. The operand along the lanes must be a constant: it
is packed into panels with the elements that a lane takes side by side.
"""

from __future__ import annotations

from tilewright.arith.expr import Load, Var, as_int
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import (
    is_simple,
    loop_of,
    op_count,
    reads_of,
    reductions,
    spatial,
    uses,
)
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.intrin.match import pattern_of
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.tune.space.sketch.rule import SketchRule
from tilewright.tune.space.sketch.state import Sketch
from tilewright.tune.space.sketch.tiling import consumer_of

# Rows and vectors that stay in registers.
ROWS, VECTORS = (1, 2, 4, 6, 8), (1, 2, 4)


def _applies(sketch: Sketch, name: str) -> bool:
    return _instruction(sketch, sketch.block(name)) is not None


def _instruction(sketch: Sketch, block: Block) -> str | None:
    """An instruction that the target has for the types of a product's operands."""
    if not (is_simple(block) and len(reductions(block)) == 1 and spatial(block)):
        return None
    depth, column = reductions(block)[0], spatial(block)[-1]
    panel, row = _operands(block, column)
    if panel is None or row is None or panel.buffer not in sketch.constants:
        return None
    types = [row.dtype, panel.dtype]
    for name, intrinsic in INTRINSICS.items():
        if intrinsic.tile == "dot" and intrinsic.available(
            sketch.target.architecture, sketch.target.features
        ):
            params = pattern_of(name).params
            together = as_int(params[0].shape[0]) or 1
            whole = (as_int(depth.extent) or 1) % together == 0
            if [p.dtype for p in params[:2]] == types and whole:
                return name
    return None


def _operands(block: Block, column: Iter) -> tuple[Load | None, Load | None]:
    """The operand along the columns and the other one, if each index of both is an axis."""
    reads = [r for r in reads_of(block) if all(isinstance(i, Var) for i in r.indices)]
    if len(reads) != 2 or len(reads_of(block)) != 2:
        return None, None
    moving = [r for r in reads if uses(r, column.name)]
    fixed = [r for r in reads if not uses(r, column.name)]
    last = Var(reductions(block)[0].name)
    if len(moving) != 1 or fixed[0].indices[-1] is not last:
        return None, None
    return moving[0], fixed[0]


def _apply(sketch: Sketch, name: str) -> None:
    sch = sketch.sch
    found = _instruction(sketch, sketch.block(name))
    assert found is not None
    consumer = consumer_of(sketch, sketch.block(name)) or sch.cache_write(name, "register")
    sketch.pending.pop(consumer, None)
    block = sketch.block(name)
    *rows, column = spatial(block)
    lanes, together = (as_int(d) or 1 for d in pattern_of(found).params[1].shape)
    vectors = sch.choose(f"{name}.vectors", VECTORS[1], lambda: VECTORS)
    high = sch.choose(f"{name}.rows", ROWS[2], lambda: ROWS) if rows else 1
    _pack(sketch, block, column, vectors * lanes, together)
    sch.pad(name, column.name, vectors * lanes)
    panel, vector, lane = sch.split(loop_of(column), [None, vectors, lanes])
    steps, step = sch.split(loop_of(reductions(block)[0]), [None, together])
    outer = [*(loop_of(it) for it in rows[:-1]), panel]
    inner = []
    if rows:
        sch.pad(name, rows[-1].name, high)
        number, row = sch.split(loop_of(rows[-1]), [None, high])
        outer, inner = [*outer, number], [row]
    sch.reorder(*outer, steps, *inner, vector, lane, step)
    written = sch.reverse_compute_at(consumer, outer[-1])
    sch.vectorize(sch.split(written[-1], [None, lanes])[1])
    sch.decompose_reduction(name, steps)
    for loop in (*inner, vector):
        sch.unroll(loop)
    *starts, first = [f.name for f in loops_above(sch.func, f"{name}.init")][len(outer) :]
    for loop in starts:
        sch.unroll(loop)
    sch.vectorize(first)
    sch.tensorize(sch.blockize(lane), found)
    if is_parallel(sch, name, op_count(block)):
        fuse_parallel(sch, name, outer)


def _pack(sketch: Sketch, block: Block, column: Iter, columns: int, together: int) -> None:
    panel, _ = _operands(block, column)
    assert panel is not None
    position = {i.name: d for d, i in enumerate(panel.indices) if isinstance(i, Var)}
    last, depth = position.pop(column.name), position.pop(reductions(block)[0].name)
    outer = [(d, 0, 0) for d in position.values()]
    tile = [(last, columns, 0), (depth, together, 0), (last, columns, 1), (depth, together, 1)]
    sketch.sch.transform_layout(panel.buffer, [*outer, *tile])


TENSORIZE = SketchRule("tensorize", _applies, _apply)
