"""Where the operand B of a GEMM is read: packed into panels of one tile's columns, or in place.

Constants are packed at compile time. A computed operand is packed into a workspace, which reads and
writes all of it once. Few rows do not pay for that: they read it where it is, panel by panel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

from tilewright.arith.expr import Load, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.annotations import VERSIONED
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    axis_names,
    block_graph,
    is_plain,
    is_unit,
    loop_of,
    op_count,
    reads_of,
    reductions,
    typical_extent,
    uses,
)
from tilewright.schedule.analysis.tile_axes import TileAxes
from tilewright.schedule.builtin.cpu.gemm.kc_blocking import narrow_k_block
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel, MicrokernelProblem
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import packing_cycles
from tilewright.schedule.builtin.cpu.parallelize import is_parallel
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget


def row_tiles(axes: TileAxes, tile: Microkernel) -> int:
    """How many row tiles reuse a panel; 0 where none does, or their number is symbolic."""
    if axes.packed_b is None or axes.m is None:
        return 0
    return -(-(as_int(axes.m.extent) or 0) // tile.mr)


def in_place_bytes(
    block: Block, axes: TileAxes, graph: BlockGraph, constants: frozenset[str]
) -> int:
    """The size of B if it is computed, contiguous along N, and multiplied as it is; else 0."""
    b = axes.packed_b
    if b is None or b.buffer in constants or narrow_k_block(block) is not None:
        return 0
    if not is_plain(b, block) or not is_unit(b, graph, axes.n.name):
        return 0
    buffer = graph.buffers[b.buffer]
    return prod(typical_extent(size) for size in buffer.shape) * buffer.dtype.bytes


@dataclass(frozen=True)
class PackedB:
    """What became of B: it is read `in_place`, with nothing past its last column, or packed.

    A `window` of pixels is read in place too, and each of its lines ends by itself. A computed
    operand is packed by the block `copy`, which is still to be scheduled; `position` has its
    iterators by axis, and `layout` is that of the panels.
    """

    in_place: bool = False
    window: bool = False
    copy: str = ""
    position: Mapping[str, int] = field(default_factory=dict)
    layout: Sequence[tuple[int, int, int]] = ()


def pack_b(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    problem: MicrokernelProblem,
    tile: Microkernel,
    constants: frozenset[str],
    target: CpuTarget,
) -> PackedB:
    """Pack B where that pays."""
    if axes.packed_b is None:
        _pack_columns(sch, block, axes, constants)
        return PackedB()
    if not is_plain(axes.packed_b, block):
        # A window of pixels: there is nothing past the end of a line, and nothing to pack.
        unit = is_unit(axes.packed_b, block_graph(sch.func), axes.n.name)
        return PackedB(in_place=unit, window=unit)
    # One tile of rows reads B as often as packing would.
    few_rows = problem.b_bytes > 0 and not problem.dynamic_m and tile.mr >= problem.m
    ragged = as_int(simplify(axes.n.extent % tile.nr)) != 0
    near = _is_near(axes.packed_b, axes, block_graph(sch.func), target)
    near = near and (not ragged or target.has_masked_loads)
    packed = _pack_panel(sch, block, axes, axes.packed_b, tile, constants, few_rows or near)
    return PackedB(in_place=few_rows or ragged) if packed is None else packed


def _pack_panel(
    sch: Schedule,
    block: Block,
    axes: TileAxes,
    panel: Load,
    tile: Microkernel,
    constants: frozenset[str],
    reads_well: bool,
) -> PackedB | None:
    """Pack B in the order in which a tile reads it, unless it `reads_well` as it is."""
    name = panel.buffer
    unit = is_unit(panel, block_graph(sch.func), axes.n.name)
    pays = name in constants or not reads_well
    if not sch.choose(f"{block.name}.packed", pays, lambda: (False, True) if unit else (True,)):
        return None
    if name not in constants:
        name = sch.cache_read(block.name, panel.buffer, "global")
        # Padding is multiplied too: subnormal numbers left there would cost up to a hundred times
        # as much on some cores.
        last = next(d for d, i in enumerate(panel.indices) if i is Var(axes.n.name))
        sch.pad(name, block_graph(sch.func).block(name).iters[last].name, tile.nr)
    order = [*axis_names(axes.batch), axes.n.name, *axis_names(reductions(block))]
    position = {i.name: d for d, i in enumerate(panel.indices) if isinstance(i, Var)}
    parts = [
        (position[axis], tile.nr if axis == axes.n.name else 0, 0)
        for axis in order
        if axis in position
    ]
    layout = [*parts, (position[axes.n.name], tile.nr, 1)]
    if panel.buffer not in constants:
        return PackedB(copy=name, position=position, layout=layout)
    sch.transform_layout(name, layout)
    return PackedB()


def _is_near(panel: Load, axes: TileAxes, graph: BlockGraph, target: CpuTarget) -> bool:
    """Whether B needs no packing for any number of rows: unit stride, all of it in L1.

    The rows of a larger B are in different pages, and may conflict in the sets of a cache.
    """
    buffer = graph.buffers[panel.buffer]
    used = prod(
        typical_extent(size)
        for size, index in zip(buffer.shape, panel.indices, strict=True)
        if index not in {Var(it.name) for it in axes.batch}
    )
    near = used * buffer.dtype.bytes <= target.l1
    return is_unit(panel, graph, axes.n.name) and near


def _pack_columns(sch: Schedule, block: Block, axes: TileAxes, constants: frozenset[str]) -> None:
    """Transpose constants that are indexed by N such that N is innermost."""
    graph = block_graph(sch.func)
    for load in reads_of(block):
        moves = uses(load, axes.n.name) and not is_unit(load, graph, axes.n.name)
        if load.buffer in constants and moves:
            position = {i.name: d for d, i in enumerate(load.indices) if isinstance(i, Var)}
            last = position.pop(axes.n.name)
            order = [*position.values(), last]
            sch.transform_layout(load.buffer, [(d, 0, 0) for d in order])


def packs_by_panel(
    b: PackedB, problem: MicrokernelProblem, tile: Microkernel, target: CpuTarget
) -> bool:
    """Whether each thread packs the panels that it uses, which then stay in its L2."""
    by_panel, before = packing_cycles(problem, (tile.mr, tile.vectors), tile.lanes, target)
    return bool(b.copy) and by_panel <= before


def pack_at(sch: Schedule, b: PackedB, axes: TileAxes, tile: Microkernel, loop: str) -> None:
    """Pack a panel in the loop over panels."""
    made = sch.compute_at(b.copy, loop)
    sch.transform_layout(b.copy, b.layout)
    column = made[b.position[axes.n.name]]
    _into_panel(sch, b, axes, tile, [x for x in made if x != column], column)


def pack_first(sch: Schedule, b: PackedB, axes: TileAxes, tile: Microkernel) -> None:
    """Pack all panels of a computed B before they are used, in parallel."""
    if not b.copy:
        return
    sch.transform_layout(b.copy, b.layout)
    block = block_graph(sch.func).block(b.copy)
    loops = [loop_of(it) for it in block.iters]
    column = loops[b.position[axes.n.name]]
    outer, inner = sch.split(column, [None, tile.nr])
    batch = [loops[b.position[it.name]] for it in axes.batch if it.name in b.position]
    sums = [loop for loop in loops if loop != column and loop not in batch]
    sch.reorder(*batch, outer, *sums, inner)
    _into_panel(sch, b, axes, tile, sums, inner)
    if is_parallel(sch, b.copy, op_count(block)):
        shared = sch.fuse(*batch, outer) if batch else outer
        sch.parallel(shared)
        sch.annotate(shared, VERSIONED.key, 1)


def _into_panel(
    sch: Schedule, b: PackedB, axes: TileAxes, tile: Microkernel, rows: list[str], column: str
) -> None:
    """The copy of one panel: vectorized along its columns, unless B has stride 1 along K."""
    graph = block_graph(sch.func)
    block = graph.block(b.copy)
    last = [it for n, it in enumerate(block.iters) if n != b.position[axes.n.name]][-1]
    (read,) = reads_of(block)
    if is_unit(read, graph, last.name) and as_int(simplify(last.extent % tile.lanes)) == 0:
        steps, lane = sch.split(rows[-1], [None, tile.lanes])
        sch.reorder(*rows[:-1], steps, column, lane)
        sch.vectorize(lane)
    else:
        vector, lane = sch.split(column, [None, tile.lanes])
        sch.reorder(*rows, vector, lane)
        sch.unroll(vector)
        sch.vectorize(lane)
