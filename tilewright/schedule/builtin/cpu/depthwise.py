"""Windows that stay within a channel: depthwise convolutions and pooling.

    parallel (image, strip of columns, line, panel of columns)
      for tiles of the line
        C = 0                                          registers
        for window rows: C[pixels, columns] += x[pixels + taps, columns] * w[taps, columns]
        out[pixels, columns] = epilogue(C)

Every multiply-add needs an element of its own, so loads are what counts: the taps along the last
axis of the window are written out, and pixels side by side share what they load. With the channels
innermost, padding is a condition on whole vectors: the loops over tiles and over window rows are
cut where it begins and ends, so that nothing is tested, and nothing copied, in between. With the
pixels innermost it is one on single lanes: a padded copy is made, of one channel at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import prod

from tilewright.arith.expr import Binary, Expr, Load, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, subexpressions
from tilewright.ir.loop.annotations import PARTITION, SHIFT_INWARDS
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    axis_names,
    block_graph,
    flat_stride,
    is_simple,
    loop_of,
    op_count,
    reads_of,
    reductions,
    spatial,
    typical_extent,
    uses,
    value_of,
)
from tilewright.schedule.builtin.cpu.epilogue import fuse_epilogue, unroll_and_vectorize
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import (
    Microkernel,
    divisors,
    largest_divisor,
    nearest_divisor,
)
from tilewright.schedule.builtin.cpu.injective import schedule_injective
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.cpu import TYPICAL_LINES
from tilewright.target.cpu import LINE_BYTES, CpuTarget

# Taps that may be written out one by one.
MOST_TAPS = 8
MOST_ROWS = 8
MOST_VECTORS = 8


@dataclass(frozen=True)
class StencilAxes:
    """The axes of windows: vectors along `column`, tiles along `row`.

    `line` is the length of a line, 0 where that is not known.
    `data` is what the windows slide over; `padding` the block that pads it, if one does.
    """

    column: Iter
    row: Iter
    line: int
    batch: tuple[Iter, ...]
    data: Load
    padding: Block | None


def match_stencil(block: Block, graph: BlockGraph, constants: frozenset[str]) -> StencilAxes | None:
    """The roles of a reduction's axes, `None` if it is not over windows of single channels."""
    axes = spatial(block)
    if not (is_simple(block) and block.init is not None and len(axes) > 1 and reductions(block)):
        return None
    reads = reads_of(block)
    slid = [r for r in reads if _slides(r, block)]
    if len(slid) != 1 or not all(r is slid[0] or r.buffer in constants for r in reads):
        return None
    data, column, row = slid[0], axes[-1], axes[-2]
    if not all(uses(data, it.name) for it in axes) or data.mask is not None:
        return None
    stride = flat_stride(data, graph.buffers[data.buffer], column.name)
    last = as_int(reductions(block)[-1].extent)
    if stride is None or stride < 1 or last is None or last > MOST_TAPS:
        return None
    before = graph.blocks[: [b.name for b in graph.blocks].index(block.name)]
    if any(b.writes[0].buffer != data.buffer for b in before):
        return None
    line = _period(data, row) or as_int(row.extent) or 0
    roles = StencilAxes(column, row, line, axes[:-2], data, before[0] if before else None)
    return roles if line or not _along_lanes(roles, block) else None


def _slides(load: Load, block: Block) -> bool:
    """Whether an index of the load moves with both a window and a tap of it."""
    windows, taps = set(axis_names(spatial(block))), set(axis_names(reductions(block)))
    return any(free_vars(i) & windows and free_vars(i) & taps for i in load.indices)


def _period(load: Load, row: Iter) -> int:
    """The length of a line, where lines follow each other along one axis; 0 if they do not."""
    found = {
        as_int(e.b) or 0
        for index in load.indices
        for e in subexpressions(index)
        if isinstance(e, Binary) and e.op == "mod" and e.a is Var(row.name)
    }
    return found.pop() if len(found) == 1 else 0


def _along_lanes(roles: StencilAxes, block: Block) -> bool:
    """Whether windows move along the lanes: then so does the condition for padding."""
    taps = set(axis_names(reductions(block)))
    return any(
        roles.column.name in free_vars(i) and free_vars(i) & taps for i in roles.data.indices
    )


def schedule_depthwise(
    sch: Schedule,
    block: Block,
    roles: StencilAxes,
    epilogue: Block,
    constants: frozenset[str],
    target: CpuTarget,
) -> None:
    """Schedule a reduction over windows and the block that writes its result out."""
    along = _along_lanes(roles, block)
    tile = _choose(sch, block, roles, along, target)
    _pack_weights(sch, block, roles, constants)
    if roles.padding is not None:
        _place_padding(sch, block, roles, roles.padding, tile, target)
    images, lines, at, row = _split_line(sch, block, roles, tile)
    *strips, panel, vector, lane = sch.split(
        loop_of(roles.column), _column_parts(sch, block, roles, along, tile, target)
    )
    *sums, last = (loop_of(it) for it in reductions(block))
    outer = [*images, *strips, *lines, panel]
    # With the taps innermost, few of the pixels that are shared have to be kept in registers.
    inner = [last, row, vector] if along else [vector, row, last]
    sch.reorder(*outer, at, *sums, *inner, lane)
    *_, written = fuse_epilogue(sch, epilogue.name, at, tile.lanes)
    for loop in () if roles.line else (row, written):
        sch.annotate(loop, SHIFT_INWARDS.key, 1)
    unroll_and_vectorize(sch, last, row, vector, lane)
    for loop in (at, *sums):
        sch.annotate(loop, PARTITION.key, 1)
    sch.decompose_reduction(block.name, (sums or [last])[0])
    sch.set_scope(block.writes[0].buffer, "register")
    _share(sch, block, roles, tile, outer, target)


def _split_line(
    sch: Schedule, block: Block, roles: StencilAxes, tile: Microkernel
) -> tuple[list[str], list[str], str, str]:
    """The loops over images and lines, and those over the tiles of a line and over a tile's rows.

    The last tile of a line of unknown length may reach beyond it, and is not stored there.
    """
    batch = [loop_of(it) for it in roles.batch]
    if roles.line:
        parts = [None, roles.line // tile.mr, tile.mr]
        line, at, row = sch.split(loop_of(roles.row), parts)
        return batch, [line], at, row
    sch.pad(block.name, roles.row.name, tile.mr)
    at, row = sch.split(loop_of(roles.row), [None, tile.mr])
    return batch[:-1], batch[-1:], at, row


def _column_parts(
    sch: Schedule,
    block: Block,
    roles: StencilAxes,
    along: bool,
    tile: Microkernel,
    target: CpuTarget,
) -> list[int | None]:
    """How the columns are cut: strips, if they are worth it, panels, vectors and lanes."""
    parts = [None, tile.nr // tile.lanes, tile.lanes]
    columns = as_int(roles.column.extent)
    if along or columns is None or columns % tile.nr != 0:
        return parts
    panels = columns // tile.nr
    strip = sch.choose(
        f"{block.name}.channel_block",
        _strip(block, roles, panels, tile, target),
        lambda: [*divisors(panels)[:-1], panels if not roles.line else 0],
    )
    return [None, strip, *parts[1:]] if strip else parts


def _strip(
    block: Block, roles: StencilAxes, panels: int, tile: Microkernel, target: CpuTarget
) -> int:
    """How many panels make a strip; 0 where all columns are one.

    The lines of a strip that are under a window stay in the nearest cache. Wider ones would come
    from the next cache once for each row of the window. What is not even there is read whole, as
    narrow strips of it are no stream.
    """
    lines = prod(typical_extent(it.extent) for it in reductions(block)[:-1])
    step, size = _row_step(roles), value_of(block).dtype.bytes * tile.nr
    line = roles.line or TYPICAL_LINES[len(TYPICAL_LINES) // 2]
    most = max(target.l1 // 4 // (lines * line * step * size), -(-LINE_BYTES // size))
    if not roles.line:
        return nearest_divisor(panels, most)
    pixels = prod(typical_extent(it.extent) for it in (*roles.batch, roles.row))
    if pixels * step * step * panels * size > target.l2:
        return 0
    strip = largest_divisor(panels, most)
    return 0 if strip == panels else strip


def _choose(
    sch: Schedule, block: Block, roles: StencilAxes, along: bool, target: CpuTarget
) -> Microkernel:
    """By default the tile with the fewest loads a multiply-add that keeps the units busy.

    It is in registers with the taps of one window, in whose place pixels come and go.
    """
    lanes = target.lanes(value_of(block).dtype.bits)
    columns = typical_extent(roles.column.extent)
    whole = max(1, -(-columns // lanes) if along else columns // lanes)
    taps = as_int(reductions(block)[-1].extent) or 1
    step = _row_step(roles)
    candidates = [
        (rows, vectors)
        for rows in range(1, MOST_ROWS + 1)
        for vectors in range(1, MOST_VECTORS + 1)
        if roles.line % rows == 0 and whole % vectors == 0
    ]
    lengths = (roles.line,) if roles.line else TYPICAL_LINES

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
        time = idle * max(1.0, loads / work) + 0.1 * loads / work
        return spilled, wasted * time, rows * vectors

    rows, vectors = min(candidates, key=cost)
    vectors = sch.choose(f"{block.name}.nr_vectors", vectors, lambda: _fitting(candidates, cost, 1))
    candidates = [c for c in candidates if c[1] == vectors]
    rows = min(candidates, key=cost)[0]
    rows = sch.choose(f"{block.name}.mr", rows, lambda: _fitting(candidates, cost, 0))
    return Microkernel(rows, vectors * lanes, lanes)


def _fitting(
    candidates: list[tuple[int, int]],
    cost: Callable[[tuple[int, int]], tuple[int, float, int]],
    place: int,
) -> list[int]:
    """The rows, or vectors, of the tiles of which nothing has to be kept in memory."""
    return sorted({c[place] for c in candidates if cost(c)[0] == 0})


def _row_step(roles: StencilAxes) -> int:
    """By how many elements of a line the data moves from one row of a tile to the next."""
    names: set[Expr] = {Var(roles.row.name)}
    if roles.line:
        names.add(Var(roles.row.name) % roles.line)
    for index in roles.data.indices:
        for e in subexpressions(index):
            if isinstance(e, Binary) and e.op == "mul" and e.a in names:
                return as_int(e.b) or 1
    return 1


def _pack_weights(
    sch: Schedule, block: Block, roles: StencilAxes, constants: frozenset[str]
) -> None:
    """Lay constants that move along the columns out with the columns innermost."""
    graph = block_graph(sch.func)
    for load in reads_of(block):
        moves = uses(load, roles.column.name)
        if load.buffer in constants and moves and all(isinstance(i, Var) for i in load.indices):
            if flat_stride(load, graph.buffers[load.buffer], roles.column.name) != 1:
                last = load.indices.index(Var(roles.column.name))
                order = [d for d in range(len(load.indices)) if d != last]
                sch.transform_layout(load.buffer, [(d, 0, 0) for d in (*order, last)])


def _place_padding(
    sch: Schedule,
    block: Block,
    roles: StencilAxes,
    padding: Block,
    tile: Microkernel,
    target: CpuTarget,
) -> None:
    """Read through the padding where whole vectors can; a copy that rearranges stands alone."""
    if _along_lanes(roles, block):
        _round_up(sch, block, roles, padding, tile)
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
    sch: Schedule, block: Block, roles: StencilAxes, padding: Block, tile: Microkernel
) -> None:
    """Let a line, and the padding behind it, be whole vectors."""
    size = as_int(roles.column.extent)
    if size is None or size % tile.nr == 0:
        return
    extra = -(-size // tile.nr) * tile.nr - size
    line = spatial(padding)[-1]
    stride = flat_stride(
        roles.data, block_graph(sch.func).buffers[roles.data.buffer], roles.column.name
    )
    length = as_int(line.extent)
    if length is not None and stride is not None:
        sch.pad(padding.name, line.name, length + extra * stride)
        sch.pad(block.name, roles.column.name, tile.nr)


def _share(
    sch: Schedule,
    block: Block,
    roles: StencilAxes,
    tile: Microkernel,
    loops: list[str],
    target: CpuTarget,
) -> None:
    """Share the work among threads, and make padded copies where they are used."""
    padding = roles.padding if _along_lanes(roles, block) else None
    channels = len(roles.batch) + (_period(roles.data, roles.row) > 0)
    if padding is not None and channels:
        copy = sch.compute_at(padding.name, loops[channels - 1])
        vector, inner = sch.split(copy[-1], [None, tile.lanes])
        sch.vectorize(inner)
        for loop in (*copy[-2:-1], vector):
            sch.annotate(loop, PARTITION.key, 1)
        loops = loops[:channels]
    elif padding is not None:
        schedule_injective(sch, padding, target)
    elif as_int(simplify(roles.column.extent % tile.nr)) != 0:
        loops = loops[:-1]  # its last iteration differs
    elif not roles.line and len(loops) > len(roles.batch) + 1:
        loops = loops[:-1]  # where a line starts is found once for the panels of a strip
    if loops and is_parallel(sch, block.name, op_count(block)):
        fuse_parallel(sch, block.name, loops)
