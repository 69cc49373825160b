"""The multi-level tiling that several rules use: the axes of a block by the tiling structure.

    for S0: for S1: for R0: for S2: for R1: for S3: block          SSRSRS

What reads the result can then be computed at the end of an outer spatial level. The lanes of
vectors are the innermost part of the last axis.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.walk import loops as loops_of
from tilewright.schedule.analysis.blocks import loop_of, op_count, reductions, spatial
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.tune.space.sketch.pack_panels import pack_panels
from tilewright.tune.space.sketch.state import Sketch
from tilewright.tune.space.sketch.tile_factors import choose_factors

# What the innermost parts of a reduction, of rows, and of columns (in vectors) are near by default.
STEPS, ROWS, VECTORS = 4, 4, 4
# How many copies of a statement unrolling may make.
UNROLLED = (0, 16, 64, 256)


@dataclass(frozen=True)
class Tiled:
    """The loops of a tiled block by level, outermost first, and which levels are spatial."""

    name: str
    levels: tuple[tuple[str, ...], ...]
    kinds: str

    def spatial(self, number: int) -> tuple[str, ...]:
        """The loops of a spatial level."""
        places = [n for n, kind in enumerate(self.kinds) if kind == "S"]
        return self.levels[places[number]]

    @property
    def first_sum(self) -> str:
        """The outermost loop of the reduction."""
        return self.levels[self.kinds.index("R")][0]


def tile(sketch: Sketch, name: str) -> Tiled:
    """Split and reorder a block's loops."""
    sch, structure = sketch.sch, sketch.structure
    block = sketch.block(name)
    lanes = sketch.lanes(block)
    *rows, column = spatial(block)
    split: dict[str, tuple[str, ...]] = {}
    for it in rows:
        wanted = (*(1,) * (structure.spatial - 2), ROWS if it is rows[-1] else 1)
        split[it.name] = sch.split(loop_of(it), choose_factors(sch, name, it, wanted))
    wanted = (*(1,) * (structure.spatial - 2), VECTORS * lanes)
    parts = choose_factors(sch, name, column, wanted, lanes)
    split[column.name] = sch.split(loop_of(column), parts)
    for it in reductions(block):
        wanted = (*(1,) * (structure.reduced - 2), STEPS)
        split[it.name] = sch.split(loop_of(it), choose_factors(sch, name, it, wanted))
    groups = {
        "S": [split[it.name] for it in spatial(block)],
        "R": [split[it.name] for it in reductions(block)],
    }
    seen = {"S": 0, "R": 0}
    levels = []
    for kind in structure.levels:
        levels.append(tuple(part[seen[kind]] for part in groups[kind]))
        seen[kind] += 1
    sch.reorder(*(loop for level in levels for loop in level))
    pack_panels(sketch, block, column, (parts[-2] or 1) * (parts[-1] or 1))
    return Tiled(name, tuple(levels), structure.levels)


def finish(sketch: Sketch, tiled: Tiled, outer: int) -> None:
    """Initialize the sums, vectorize and unroll the innermost level, parallelize the outer ones.

    `outer` spatial levels have nothing beside the tile in them.
    """
    sch, name = sketch.sch, tiled.name
    block = sketch.block(name)
    *inner, lane = tiled.spatial(-1)
    if _extent(sketch, lane) > 1:
        sch.vectorize(lane)
    _unroll(sketch, name, [*tiled.levels[-2], *inner])
    sch.decompose_reduction(name, tiled.first_sum)
    if is_parallel(sch, name, op_count(block)):
        fuse_parallel(sch, name, [loop for n in range(outer) for loop in tiled.spatial(n)])


def write_out(sketch: Sketch, consumer: str, at: str) -> None:
    """Compute what reads the tile where it is finished, vectorized."""
    sch = sketch.sch
    loops = sch.reverse_compute_at(consumer, at)
    sketch.pending.pop(consumer, None)
    block = sketch.block(consumer)
    if not loops:
        return
    lanes = sketch.lanes(block)
    extent = _extent(sketch, loops[-1])
    if extent == 0 or extent >= lanes > 1:
        _, lane = sch.split(loops[-1], [None, lanes])
        sch.vectorize(lane)


def consumer_of(sketch: Sketch, block: Block) -> str | None:
    """The one block that takes a result over element by element and is not laid out yet."""
    readers = sketch.readers(block)
    if len(readers) != 1 or sketch.is_output(block) or reductions(readers[0]):
        return None
    same = [as_int(it.extent) for it in spatial(readers[0])]
    own = [as_int(it.extent) for it in spatial(block)]
    return readers[0].name if same == own and readers[0].name in sketch.pending else None


def _unroll(sketch: Sketch, name: str, loops: list[str]) -> None:
    """Unroll as many of the innermost loops as make no more copies than was decided."""
    most = sketch.sch.choose(f"{name}.unroll", UNROLLED[2], lambda: UNROLLED)
    copies = 1
    for loop in reversed(loops):
        extent = _extent(sketch, loop)
        copies *= extent
        if extent == 0 or copies > most:
            return
        sketch.sch.unroll(loop)


def _extent(sketch: Sketch, name: str) -> int:
    """The iterations of a loop; 0 where they are not known."""
    loop = next(f for f in loops_of(sketch.sch.func.body) if f.name == name)
    return as_int(loop.extent) or 0
