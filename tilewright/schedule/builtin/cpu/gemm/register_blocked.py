"""Reductions computed in register tiles: matrix products, convolutions, pooling, column sums.

The innermost output axis is laid over vector lanes (*columns*), the axis before it over rows of the
tile; the tile's sums stay in registers while the reduction runs, then an epilogue writes them out.

    parallel (batch, column panel, row tile)
      C = 0                                 registers
      for k: C[rows, columns] += A[row, k] * B[k, columns]
      out[rows, columns] = epilogue(C)

A constant operand B is packed at compile time into panels of one tile's columns, so that it is read
front to back; another operand that is not contiguous along the columns is packed into a workspace.
Rows and columns beyond the end are computed on clamped reads and never stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.arith.expr import Binary, Load, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import subexpressions
from tilewright.ir.loop.annotations import VERSIONED
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import (
    UNKNOWN_WORK,
    Facts,
    axis_names,
    facts_of,
    loop_of,
    reads_of,
    reductions,
    summed_type,
    sums_briefly,
    typical_extent,
    uses,
    work,
)
from tilewright.schedule.analysis.tile_axes import (
    Roles,
    is_plain,
    is_unit,
    panels_bytes,
    row_bytes,
    steps_of,
)
from tilewright.schedule.builtin.cpu.gemm.edge_tiles import are_pixels, choose_edge, mark_edges
from tilewright.schedule.builtin.cpu.gemm.k_blocked import TileAxes, choose_depth, schedule_deep
from tilewright.schedule.builtin.cpu.gemm.mc_blocking import choose_group, split_rows
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import (
    RegisterTile,
    TileProblem,
    choose_tile,
)
from tilewright.schedule.builtin.cpu.gemm.narrow_accum import brief_depth, chains, schedule_brief
from tilewright.schedule.builtin.cpu.parallelize import PARALLEL_WORK, is_shared, share
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# Row tiles that a block of the panel must serve for it to be worth keeping near.
LEAST_REUSE = 4
# No register tile has as many rows or vectors as this.
LONGEST_TILE = 65
# Steps of a reduction that may be written out where scalars come one by one.
STEPS = (1, 2, 4, 8)


def schedule_tile(
    sch: Schedule,
    block: Block,
    roles: Roles,
    epilogue: Block,
    constants: frozenset[str],
    target: CpuTarget,
) -> None:
    """Schedule a reduction and the block that writes its result out."""
    tile = _choose(sch, block, roles, target)
    if roles.panel is None:
        _pack_columns(sch, block, roles, constants)
    else:
        _pack_panel(sch, block, roles, roles.panel, tile, constants, target)
    tiles = _row_tiles(roles, tile)
    part = brief_depth(block)
    if part is not None and part.part == 0 and tile.chains == 1:
        sch.narrow_sum(block.name)
    elif part is not None:
        together = choose_group(sch, block, roles, tile, tiles, target)
        _pad(sch, block, roles, tile, together)
        axes = TileAxes(roles.batch, roles.row, roles.column)
        least = _least_edge(block, roles, tile)
        edge = choose_edge(sch, block.name, roles.row, tile.rows, least)
        schedule_brief(sch, block, axes, tile, part, epilogue, together, edge)
        return
    depth = choose_depth(sch, block, tile, target, tiles >= LEAST_REUSE) if tiles else None
    if depth is not None:
        _pad(sch, block, roles, tile)
        axes = TileAxes(roles.batch, roles.row, roles.column)
        schedule_deep(sch, block, axes, tile, depth, epilogue, target)
        return
    _schedule_flat(sch, block, roles, tile, tiles, epilogue, target)


def _schedule_flat(
    sch: Schedule,
    block: Block,
    roles: Roles,
    tile: RegisterTile,
    tiles: int,
    epilogue: Block,
    target: CpuTarget,
) -> None:
    """Tiles that sum all steps at once: one after another, or shared among threads."""
    together = choose_group(sch, block, roles, tile, tiles, target)
    _pad(sch, block, roles, tile, together)
    row_group, row_tile, row_loops = split_rows(sch, roles, tile, together)
    panel_loop, column = sch.split(loop_of(roles.column), [None, tile.columns])
    vector, lane = sch.split(column, [None, tile.lanes])
    # A shared panel stays in the nearest cache for all rows. Where all panels do, or nothing is
    # shared, neighbouring columns come next: what comes of them lies side by side.
    far = roles.panel is not None and panels_bytes(block, roles) > target.l1
    panels_first = sch.choose(f"{block.name}.panels_first", far, lambda: (False, True))
    inner_order = [panel_loop, *row_tile] if panels_first else [*row_tile, panel_loop]
    outer = [*(loop_of(it) for it in roles.batch), *row_group, *inner_order]
    sums = [loop_of(it) for it in reductions(block)]
    steps = _unrolled_steps(sch, block, sums, tile)
    sch.reorder(*outer, *sums, *steps, *row_loops, vector, lane)
    written = _write_out(sch, epilogue, outer[-1], roles, tile)
    least = _least_edge(block, roles, tile)
    mark_edges(sch, block.name, roles.row, tile.rows, least, [*row_loops, *written])
    for loop in (*steps, *row_loops, vector):
        sch.unroll(loop)
    sch.vectorize(lane)
    sch.decompose_reduction(block.name, sums[0])
    sch.set_scope(block.writes[0].buffer, "register")
    if is_shared(sch, block.name, work(block)):
        share(sch, block.name, outer)


def _unrolled_steps(sch: Schedule, block: Block, sums: list[str], tile: RegisterTile) -> list[str]:
    """Write out a vector's worth of steps of the reduction, where its scalars come as vectors."""
    last = reductions(block)[-1].extent
    steps = tile.lanes if tile.by_lane else 1
    steps = sch.choose(
        f"{block.name}.steps",
        steps,
        lambda: [n * steps for n in STEPS if as_int(simplify(last % (n * steps))) == 0],
    )
    if steps == 1:
        return []
    sums[-1], inner = sch.split(sums[-1], [None, steps])
    return [inner]


def _by_lane(block: Block, roles: Roles, facts: Facts, lanes: int, target: CpuTarget) -> bool:
    """Whether the scalars of a matrix product can be loaded as vectors along the reduction."""
    innermost = reductions(block)[-1]
    if roles.panel is None or not target.has_lane_fma:
        return False
    if as_int(simplify(innermost.extent % lanes)) != 0:
        return False
    scalars = [r for r in reads_of(block) if r is not roles.panel]
    return all(is_unit(r, facts, innermost.name) for r in scalars)


def _choose(sch: Schedule, block: Block, roles: Roles, target: CpuTarget) -> RegisterTile:
    bits = summed_type(block).bits
    can = _by_lane(block, roles, facts_of(sch.func), target.lanes(bits), target)
    by_lane = sch.choose(f"{block.name}.by_lane", can, lambda: (False, True) if can else (False,))
    problem = TileProblem(
        rows=_rows_at_once(roles, target.lanes(bits), target),
        columns=typical_extent(roles.column.extent),
        steps=steps_of(block),
        bits=bits,
        shared=roles.panel is not None,
        period=0 if roles.row is None else _period(block, roles.row),
        by_lane=by_lane,
        chains=chains(block, target.lanes(bits), by_lane) if roles.panel is not None else 1,
        unknown=roles.row is not None
        and as_int(roles.row.extent) is None
        and _single_rows(block, roles)
        and not _whole_tiles(block, roles),
        # how many tiles of unknown sizes threads share nobody can tell
        batch=_count(roles.batch) if PARALLEL_WORK <= work(block) < UNKNOWN_WORK else 0,
        stride=row_bytes(block, roles, facts_of(sch.func)),
    )
    return choose_tile(sch, block.name, problem, target)


def _count(axes: Sequence[Iter]) -> int:
    return prod(typical_extent(it.extent) for it in axes)


def _rows_at_once(roles: Roles, lanes: int, target: CpuTarget) -> int:
    """How many rows a tile may have.

    Rows that share nothing only keep the units busy, together with the vectors of columns. Where
    their number is unknown (a batch most often), it may be one: a tile then has no more rows than
    are computed in the same time.
    """
    if roles.row is None:
        return 1
    if roles.panel is not None or as_int(roles.row.extent) is not None:
        return typical_extent(roles.row.extent)
    vectors = -(-typical_extent(roles.column.extent) // lanes)
    return max(1, target.costs.fma_chains // vectors)


def _period(block: Block, row: Iter) -> int:
    """The least `n` for which an index uses `row % n`; 0 if none does."""
    found = [
        as_int(e.b) or 0
        for load in reads_of(block)
        for index in load.indices
        for e in subexpressions(index)
        if isinstance(e, Binary) and e.op == "mod" and e.a is Var(row.name)
    ]
    return min(found, default=0)


def _pack_panel(
    sch: Schedule,
    block: Block,
    roles: Roles,
    panel: Load,
    tile: RegisterTile,
    constants: frozenset[str],
    target: CpuTarget,
) -> None:
    """Lay the panel operand out in the order in which the tile reads it, where that pays."""
    if not is_plain(panel, block):
        return
    facts = facts_of(sch.func)
    name = panel.buffer
    pays = name in constants or not _reads_well(panel, block, roles, facts, tile, target)
    unit = is_unit(panel, facts, roles.column.name)
    if not sch.choose(f"{block.name}.packed", pays, lambda: (False, True) if unit else (True,)):
        return
    if name not in constants:
        name = sch.cache_read(block.name, panel.buffer, "global")
        # What lies past the last column is multiplied too: numbers left there may be subnormal,
        # which some machines take a hundred times as long for.
        last = next(d for d, i in enumerate(panel.indices) if i is Var(roles.column.name))
        sch.pad(name, facts_of(sch.func).block(name).iters[last].name, tile.columns)
    order = [*axis_names(roles.batch), roles.column.name, *axis_names(reductions(block))]
    position = {i.name: d for d, i in enumerate(panel.indices) if isinstance(i, Var)}
    parts = [
        (position[axis], tile.columns if axis == roles.column.name else 0, 0)
        for axis in order
        if axis in position
    ]
    sch.transform_layout(name, [*parts, (position[roles.column.name], tile.columns, 1)])
    if panel.buffer not in constants:
        _schedule_packing(sch, name, position, roles, tile, target)


def _reads_well(
    panel: Load, block: Block, roles: Roles, facts: Facts, tile: RegisterTile, target: CpuTarget
) -> bool:
    """Whether the operand needs no packing: whole vectors, and all of it in the nearest cache.

    In a larger one the rows of a panel lie far apart, each in a page and a cache set of its own.
    """
    whole = as_int(simplify(roles.column.extent % tile.columns)) == 0
    buffer = facts.buffers[panel.buffer]
    used = prod(
        typical_extent(size)
        for size, index in zip(buffer.shape, panel.indices, strict=True)
        if index not in {Var(it.name) for it in roles.batch}
    )
    near = used * buffer.dtype.bytes <= target.l1
    return is_unit(panel, facts, roles.column.name) and whole and near


def _pack_columns(sch: Schedule, block: Block, roles: Roles, constants: frozenset[str]) -> None:
    """Lay constants that move along the columns out with the columns innermost."""
    facts = facts_of(sch.func)
    for load in reads_of(block):
        moves = uses(load, roles.column.name) and not is_unit(load, facts, roles.column.name)
        if load.buffer in constants and moves:
            position = {i.name: d for d, i in enumerate(load.indices) if isinstance(i, Var)}
            last = position.pop(roles.column.name)
            order = [*position.values(), last]
            sch.transform_layout(load.buffer, [(d, 0, 0) for d in order])


def _schedule_packing(
    sch: Schedule,
    name: str,
    position: dict[str, int],
    roles: Roles,
    tile: RegisterTile,
    target: CpuTarget,
) -> None:
    """The copy into panels: parallel over panels, in vectors along what is read.

    That is along the panel's columns, unless the operand has a step of the reduction side by side.
    """
    facts = facts_of(sch.func)
    block = facts.block(name)
    loops = [loop_of(it) for it in block.iters]
    column = loops[position[roles.column.name]]
    outer, inner = sch.split(column, [None, tile.columns])
    batch = [loops[position[it.name]] for it in roles.batch if it.name in position]
    sums = [loop for loop in loops if loop != column and loop not in batch]
    last = next(it for it in block.iters if loop_of(it) == sums[-1])
    (read,) = reads_of(block)
    if is_unit(read, facts, last.name) and as_int(simplify(last.extent % tile.lanes)) == 0:
        steps, lane = sch.split(sums.pop(), [None, tile.lanes])
        sch.reorder(*batch, outer, *sums, steps, inner, lane)
        sch.vectorize(lane)
    else:
        sch.reorder(*batch, outer, *sums, inner)
        sch.vectorize(inner)
    if is_shared(sch, block.name, work(block)):
        shared = sch.fuse(*batch, outer) if batch else outer
        sch.parallel(shared)
        sch.annotate(shared, VERSIONED.key, 1)


def _pad(sch: Schedule, block: Block, roles: Roles, tile: RegisterTile, together: int = 1) -> None:
    """Round columns up to whole tiles, rows to whole groups of so many."""
    wanted = [(roles.column, tile.columns)]
    if roles.row is not None:
        wanted.append((roles.row, tile.rows * max(1, together)))
    for axis, multiple in wanted:
        if as_int(simplify(axis.extent % multiple)) != 0:
            sch.pad(block.name, axis.name, multiple)


def _row_tiles(roles: Roles, tile: RegisterTile) -> int:
    """How many row tiles share a panel; 0 where they share none, or their number is not known."""
    if roles.panel is None or roles.row is None:
        return 0
    return -(-(as_int(roles.row.extent) or 0) // tile.rows)


def _least_edge(block: Block, roles: Roles, tile: RegisterTile) -> int:
    """Rows of a matrix may be one alone; those of an image are rarely few."""
    if roles.panel is None:
        return 0
    if _whole_tiles(block, roles):
        return tile.rows
    return 1 if _single_rows(block, roles) else -(-tile.rows // 2)


def _whole_tiles(block: Block, roles: Roles) -> bool:
    """Whether all tiles may be whole: there are always enough rows for one, or none."""
    return not sums_briefly(block) and _single_rows(block, roles) and are_pixels(roles.row)


def _single_rows(block: Block, roles: Roles) -> bool:
    """Whether this is a product of matrices, of which each row stands for itself."""
    return roles.panel is not None and not roles.batch and len(reductions(block)) == 1


def _write_out(
    sch: Schedule, epilogue: Block, at: str, roles: Roles, tile: RegisterTile
) -> list[str]:
    """Compute the epilogue on each finished tile, row by row in vectors; the loops over rows."""
    loops = sch.reverse_compute_at(epilogue.name, at)
    vector, lane = sch.split(loops[-1], [None, tile.lanes])
    extents = {f.name: as_int(f.extent) for f in loops_above(sch.func, epilogue.name)}
    for loop in (*loops[:-1], vector):
        # an epilogue over what was summed up goes on for longer than a tile
        if (extents[str(loop)] or LONGEST_TILE) < LONGEST_TILE:
            sch.unroll(loop)
    sch.vectorize(lane)
    return [str(loop) for loop in loops[:-1]]
