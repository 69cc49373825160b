"""Layout: constants in the order in which a tile reads them, panel after panel of its columns."""

from __future__ import annotations

from tilewright.arith.expr import Load, Var
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import axis_names, is_plain, reads_of, reductions, uses
from tilewright.tune.space.sketch.state import Sketch


def pack_panels(sketch: Sketch, block: Block, column: Iter, columns: int) -> None:
    """Pack what a block reads along `column`, where that is a constant; so is by default done."""
    for load in reads_of(block):
        if not (load.buffer in sketch.constants and uses(load, column.name)):
            continue
        if is_plain(load, block) and _once(sketch, load.buffer):
            asked = f"{block.name}.pack.{load.buffer}"
            if sketch.sch.choose(asked, True, lambda: (False, True)):
                _pack(sketch, block, load, column, columns)


def _pack(sketch: Sketch, block: Block, load: Load, column: Iter, columns: int) -> None:
    position = {i.name: d for d, i in enumerate(load.indices) if isinstance(i, Var)}
    last = position.pop(column.name)
    sums = [position.pop(n) for n in axis_names(reductions(block)) if n in position]
    outer = [(d, 0, 0) for d in position.values()]
    inner = [(d, 0, 0) for d in sums]
    parts = [*outer, (last, columns, 0), *inner, (last, columns, 1)]
    sketch.sch.transform_layout(load.buffer, parts)


def _once(sketch: Sketch, buffer: str) -> bool:
    return len(sketch.graph.consumers(buffer)) == 1
