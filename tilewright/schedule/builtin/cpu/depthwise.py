"""Stencils of single channels: depthwise convolution and pooling.

    parallel (image, block of channels, line, panel of columns)
      for tiles of the line
        C = 0                                          registers
        for window rows: C[pixels, columns] += x[pixels + taps, columns] * w[taps, columns]
        out[pixels, columns] = epilogue(C)

Every FMA has an input element of its own, so loads are the bottleneck. The taps along the last axis
of the window are unrolled, and neighbouring pixels reuse loaded vectors. With channels innermost,
padding is a condition on whole vectors: the loop over tiles is partitioned where it begins and
ends, and window rows that lie in it come last, so that the middle has no guards and needs no copy.
With pixels innermost it is a condition on lanes: a padded copy is made, one channel at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.vector import MAX_DENSE_STRIDE
from tilewright.ir.loop.annotations import PADDING_LAST, PARTITION, SHIFT_INWARDS
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_stride,
    loop_of,
    op_count,
    reads_of,
    reductions,
    spatial,
    typical_extent,
    uses,
    value_of,
)
from tilewright.schedule.analysis.stencil_axes import (
    StencilAxes,
    moves_along_lanes,
    row_period,
    row_step,
)
from tilewright.schedule.builtin.cpu.epilogue import fuse_epilogue, unroll_and_vectorize
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import (
    divisors,
    largest_divisor,
    nearest_divisor,
)
from tilewright.schedule.builtin.cpu.gemm.phase_layout import copy_lines
from tilewright.schedule.builtin.cpu.injective import schedule_injective
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.cpu import TYPICAL_LINES
from tilewright.target.cpu import LINE_BYTES, CpuTarget

MAX_ROWS = 8
MAX_VECTORS = 8
# The least elements of a vector.
MIN_LANES = 4


def schedule_depthwise(
    sch: Schedule,
    block: Block,
    axes: StencilAxes,
    epilogue: Block,
    constants: frozenset[str],
    target: CpuTarget,
) -> None:
    """Schedule a stencil and its epilogue."""
    along = moves_along_lanes(axes, block)
    tile = _choose(sch, block, axes, along, target)
    _pack_weights(sch, block, axes, constants)
    if axes.padding is not None:
        _place_padding(sch, block, axes, axes.padding, tile, target)
    columns = as_int(axes.column.extent)
    if not along and columns is not None and columns % tile.nr != 0:
        # Sums of which some lanes are masked would not stay in registers.
        sch.pad(block.name, axes.column.name, tile.nr, "zeros")
    images, lines, at, row = _split_line(sch, block, axes, tile)
    *channel_blocks, panel, vector, lane = sch.split(
        loop_of(axes.column), _column_parts(sch, block, axes, along, tile, target)
    )
    *sums, last = (loop_of(it) for it in reductions(block))
    outer = [*images, *channel_blocks, *lines, panel]
    # With the taps innermost, few of the reused pixels are live at once.
    inner = [last, row, vector] if along else [vector, row, last]
    sch.reorder(*outer, at, *sums, *inner, lane)
    *_, written = fuse_epilogue(sch, epilogue.name, at, tile.lanes)
    for loop in () if _has_whole_tiles(axes, tile.mr) else (row, written):
        sch.annotate(loop, SHIFT_INWARDS.key, 1)
    unroll_and_vectorize(sch, last, row, vector, lane)
    for loop in (at, *sums):
        sch.annotate(loop, PARTITION.key, 1)
    for loop in () if along else sums:
        sch.annotate(loop, PADDING_LAST.key, 1)
    sch.decompose_reduction(block.name, (sums or [last])[0])
    sch.set_scope(block.writes[0].buffer, "register")
    _parallelize(sch, block, axes, tile, outer, target)


def _split_line(
    sch: Schedule, block: Block, axes: StencilAxes, tile: Microkernel
) -> tuple[list[str], list[str], str, str]:
    """The loops over images and lines, and those over the tiles of a line and over a tile's rows.

    The last tile of a line may exceed it; the excess is not stored.
    """
    batch = [loop_of(it) for it in axes.batch]
    if _has_whole_tiles(axes, tile.mr):
        parts = [None, axes.line // tile.mr, tile.mr]
        line, at, row = sch.split(loop_of(axes.row), parts)
        return batch, [line], at, row
    sch.pad(block.name, axes.row.name, tile.mr)
    at, row = sch.split(loop_of(axes.row), [None, tile.mr])
    return batch[:-1], batch[-1:], at, row


def _has_whole_tiles(axes: StencilAxes, rows: int) -> bool:
    """Whether a line is known to consist of whole tiles."""
    return axes.line > 0 and axes.line % rows == 0


def _column_parts(
    sch: Schedule,
    block: Block,
    axes: StencilAxes,
    along: bool,
    tile: Microkernel,
    target: CpuTarget,
) -> list[int | None]:
    """How the columns are split: channel blocks, if they pay, panels, vectors and lanes."""
    parts = [None, tile.vectors, tile.lanes]
    columns = as_int(axes.column.extent)
    if along or columns is None or columns % tile.nr != 0:
        return parts
    panels = columns // tile.nr
    channel_block = sch.choose(
        f"{block.name}.channel_block",
        _channel_block(block, axes, panels, tile, target),
        lambda: [*divisors(panels)[:-1], panels if not axes.line else 0],
    )
    return [None, channel_block, *parts[1:]] if channel_block else parts


def _channel_block(
    block: Block, axes: StencilAxes, panels: int, tile: Microkernel, target: CpuTarget
) -> int:
    """How many panels make a channel block; 0 where all columns are one.

    The lines of a channel block under a window stay in L1; wider ones would be loaded from L2 once
    for each row of the window. An input that exceeds L2 is read whole, so that the prefetcher can
    follow.
    """
    lines = prod(typical_extent(it.extent) for it in reductions(block)[:-1])
    step, size = row_step(axes), value_of(block).dtype.bytes * tile.nr
    line = axes.line or TYPICAL_LINES[len(TYPICAL_LINES) // 2]
    most = max(target.l1 // 4 // (lines * line * step * size), -(-LINE_BYTES // size))
    if not axes.line:
        return nearest_divisor(panels, most)
    pixels = prod(typical_extent(it.extent) for it in (*axes.batch, axes.row))
    if pixels * step * step * panels * size > target.l2:
        return 0
    channel_block = largest_divisor(panels, most)
    return 0 if channel_block == panels else channel_block


def _choose(
    sch: Schedule, block: Block, axes: StencilAxes, along: bool, target: CpuTarget
) -> Microkernel:
    """By default the tile with the fewest loads for each FMA that fills the FMA pipelines.

    The registers hold its accumulators, the taps of a window row, and the pixels in use.
    """
    lanes = _lanes(block, axes, along, target)
    columns = typical_extent(axes.column.extent)
    whole = -(-columns // lanes)
    ragged = not along and columns % lanes != 0  # the last panel is padded in any case
    taps = as_int(reductions(block)[-1].extent) or 1
    step = row_step(axes)
    candidates = [
        (rows, vectors)
        for rows in range(1, MAX_ROWS + 1)
        for vectors in range(1, MAX_VECTORS + 1)
        if (axes.line % rows == 0 or _may_overlap(axes, rows))
        and (whole % vectors == 0 or (ragged and vectors <= whole))
    ]
    lengths = (axes.line,) if axes.line else TYPICAL_LINES

    def loaded(rows: int, vectors: int) -> int:
        shared = rows * taps if along else min(rows * taps, (rows - 1) * step + taps)
        return shared * vectors

    chains = min(target.costs.stencil_chains, target.vector_registers // 2)

    def cost(tile: tuple[int, int]) -> tuple[int, float, int]:
        rows, vectors = tile
        work = rows * vectors * taps
        held = rows * vectors + taps + (vectors if along else 0)
        idle = max(1.0, chains / (rows * vectors))
        spilled = max(0, held + 2 - target.vector_registers)
        loads = loaded(rows, vectors) + taps * (1 if along else vectors)
        wasted = sum(-(-n // rows) * rows / n for n in lengths) / len(lengths)
        wasted *= -(-whole // vectors) * vectors / whole
        time = idle * max(1.0, loads / work) + 0.1 * loads / work
        return spilled, wasted * time, rows * vectors

    rows, vectors = min(candidates, key=cost)
    vectors = sch.choose(
        f"{block.name}.nr_vectors",
        vectors,
        lambda: _fitting(candidates, cost, 1),
        lambda width: min(cost(c) for c in candidates if c[1] == width)[1],
    )
    candidates = [c for c in candidates if c[1] == vectors]
    rows = min(candidates, key=cost)[0]
    rows = sch.choose(
        f"{block.name}.mr",
        rows,
        lambda: _fitting(candidates, cost, 0),
        lambda height: cost((height, vectors))[1],
    )
    return Microkernel(rows, vectors * lanes, lanes)


def _lanes(block: Block, axes: StencilAxes, along: bool, target: CpuTarget) -> int:
    """The elements of a vector: half of one, or less, where a line of pixels is not longer."""
    lanes = target.lanes(value_of(block).dtype.bits)
    line = as_int(axes.column.extent)
    while along and line is not None and lanes // 2 >= max(line, MIN_LANES):
        lanes //= 2
    return lanes


def _may_overlap(axes: StencilAxes, rows: int) -> bool:
    """Whether the last tile of a line may overlap with the one before.

    It can where rows are an axis of their own, and pays where whole tiles would all be small.
    """
    whole = largest_divisor(axes.line, MAX_ROWS) if axes.line else MAX_ROWS
    return as_int(axes.row.extent) == axes.line > rows and whole < MAX_ROWS // 2


def _fitting(
    candidates: list[tuple[int, int]],
    cost: Callable[[tuple[int, int]], tuple[int, float, int]],
    place: int,
) -> list[int]:
    """The rows, or vectors, of the tiles that fit the registers."""
    return sorted({c[place] for c in candidates if cost(c)[0] == 0})


def _pack_weights(
    sch: Schedule, block: Block, axes: StencilAxes, constants: frozenset[str]
) -> None:
    """Transpose constants that are indexed by the columns such that these are innermost."""
    graph = block_graph(sch.func)
    for load in reads_of(block):
        moves = uses(load, axes.column.name)
        if load.buffer in constants and moves and all(isinstance(i, Var) for i in load.indices):
            if flat_stride(load, graph.buffers[load.buffer], axes.column.name) != 1:
                last = load.indices.index(Var(axes.column.name))
                order = [d for d in range(len(load.indices)) if d != last]
                sch.transform_layout(load.buffer, [(d, 0, 0) for d in (*order, last)])


def _place_padding(
    sch: Schedule,
    block: Block,
    axes: StencilAxes,
    padding: Block,
    tile: Microkernel,
    target: CpuTarget,
) -> None:
    """Inline the padding where it masks whole vectors; a copy that rearranges is a nest."""
    if moves_along_lanes(axes, block):
        _round_up(sch, block, axes, padding, tile)
        _store_by_phase(sch, axes, padding)
    elif _in_line(padding, block_graph(sch.func)) and sch.choose(
        f"{padding.name}.fold_padding", True, lambda: (False, True)
    ):
        sch.inline(padding.name)
    else:
        schedule_injective(sch, padding, target)


def _in_line(padding: Block, graph: BlockGraph) -> bool:
    last = spatial(padding)[-1].name
    return all(flat_stride(r, graph.buffers[r.buffer], last) == 1 for r in reads_of(padding))


def _round_up(
    sch: Schedule, block: Block, axes: StencilAxes, padding: Block, tile: Microkernel
) -> None:
    """Pad lines, and the padded copy, to whole vectors."""
    size = as_int(axes.column.extent)
    if size is None or size % tile.nr == 0:
        return
    extra = -(-size // tile.nr) * tile.nr - size
    line = spatial(padding)[-1]
    stride = flat_stride(
        axes.data, block_graph(sch.func).buffers[axes.data.buffer], axes.column.name
    )
    length = as_int(line.extent)
    if length is not None and stride is not None:
        sch.pad(padding.name, line.name, length + extra * stride)
        sch.pad(block.name, axes.column.name, tile.nr)


def _lane_step(axes: StencilAxes) -> int:
    """The stride of windows along the lanes, if vectors of one phase may be stored together; 1."""
    step = stride_of(axes.data.indices[-1], axes.column.name) or 1
    return step if 2 <= step <= MAX_DENSE_STRIDE else 1


def _store_by_phase(sch: Schedule, axes: StencilAxes, padding: Block) -> None:
    """Store what windows step over by phases: see `phase_layout.py`."""
    step = _lane_step(axes)
    if step > 1:
        copied = block_graph(sch.func).block(padding.name)
        line, last = spatial(copied)[-1], len(axes.data.indices) - 1
        sch.pad(padding.name, line.name, step)
        whole = [(d, 0, 0) for d in range(last)]
        sch.transform_layout(copied.writes[0].buffer, [*whole, (last, step, 1), (last, step, 0)])


def _parallelize(
    sch: Schedule,
    block: Block,
    axes: StencilAxes,
    tile: Microkernel,
    loops: list[str],
    target: CpuTarget,
) -> None:
    """Parallelize the loops, and make padded copies inside them."""
    padding = axes.padding if moves_along_lanes(axes, block) else None
    channels = len(axes.batch) + (row_period(axes.data, axes.row) > 0)
    if padding is not None and channels:
        _copy_at(sch, padding.name, loops[channels - 1], _lane_step(axes), tile, target)
        loops = loops[:channels]
    elif padding is not None:
        schedule_injective(sch, padding, target)
    elif as_int(simplify(axes.column.extent % tile.nr)) != 0:
        loops = loops[:-1]  # the last iteration has guards
    elif not axes.line and len(loops) > len(axes.batch) + 1:
        loops = loops[:-1]  # the start of a line is computed once for all panels of a block
    if loops and is_parallel(sch, block.name, op_count(block)):
        fuse_parallel(sch, block.name, loops)


def _copy_at(
    sch: Schedule, padding: str, loop: str, step: int, tile: Microkernel, target: CpuTarget
) -> None:
    """Make the padded copy of a channel in a loop."""
    copy = sch.compute_at(padding, loop)
    if step > 1:
        copy_lines(sch, padding, copy, step, target)
        loops = copy[-2:-1]
    else:
        vector, lane = sch.split(copy[-1], [None, tile.lanes])
        sch.vectorize(lane)
        loops = (*copy[-2:-1], vector)
    for name in loops:
        sch.annotate(name, PARTITION.key, 1)
