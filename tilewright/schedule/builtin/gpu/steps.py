"""Recurrences: steps one after another, each of them shared by all multiprocessors.

    for t in serial(T)
      grid: states                          what comes before the first sum
      grid: some rows, all gates of some units
        thread (gate, unit, lane): part[row] += state[row, piece] * weights[unit, gate, piece]
        combine (lanes):           sums[row, gate, unit] = part[row]
        thread (row, unit):        state, outputs = formulas(sums)

A grid loop in a serial one is launched once for each of its iterations. Constant weights are packed
at compile time, so that what is summed lies side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tilewright.arith.expr import Load, Var, as_int
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, For, Func, Iter
from tilewright.ir.loop.walk import blocks, find_loop
from tilewright.schedule.builtin.gpu.points import bind_points, leading_spatial, own_loops
from tilewright.schedule.builtin.recurrence import steps_loop
from tilewright.schedule.builtin.structure import (
    facts_of,
    flat_stride,
    is_simple,
    loop_of,
    reads_of,
    reductions,
    spatial,
    typical_extent,
    uses,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Products of a step from which on it is worth launches of its own: one block of threads has done
# as many in the time of these.
SHARED_PRODUCTS = 8_192
# Threads of a block, and the rows that each has sums of.
THREADS, ROWS = 512, 8
# Pieces that a thread reads before it adds them.
AHEAD = 4
# Rows where their number is not known.
SYMBOLIC_ROWS = 4


@dataclass(frozen=True)
class _Tile:
    """The axes of a sum, and what a block of threads has of rows and units.

    A thread reads `width` neighbours of the sum at once, and `ahead` such pieces before it adds.
    """

    row: Iter
    gate: Iter
    unit: Iter
    rows: int
    units: int
    width: int
    ahead: int


def shared_steps(func: Func) -> For | None:
    """The loop over steps that are worth sharing, if all of a function is in one."""
    loop = steps_loop(func)
    if loop is None or [*blocks(loop)] != [*blocks(func.body)]:
        return None
    sums = [b for b in blocks(loop) if reductions(b)]
    known = all(len(spatial(b)) == 4 and len(reductions(b)) == 1 for b in sums)
    if not known or not all(map(is_simple, blocks(loop))):
        return None
    return loop if max(map(_products, sums)) >= SHARED_PRODUCTS else None


def _products(block: Block) -> int:
    total = 1
    for it in block.iters[1:]:
        total *= typical_extent(it.extent)
    return total


def schedule_steps(sch: Schedule, steps: For, constants: frozenset[str], target: GpuTarget) -> None:
    """Schedule every nest in the loop `steps`, which itself stays as it is."""
    found = list(blocks(steps))
    starts = [n for n, b in enumerate(found) if reductions(b)]
    _schedule_states(sch, found[: starts[0]])
    for first, end in zip(starts, [*starts[1:], len(found)], strict=True):
        _schedule_sum(sch, found[first], found[first + 1 : end], constants, target)


def _schedule_states(sch: Schedule, states: list[Block]) -> None:
    """What comes before the first sum: one that only the next reads is computed with that."""
    for before, block in zip(("", *(b.name for b in states)), states, strict=False):
        point = bind_points(sch, leading_spatial(sch, block))
        readers = facts_of(sch.func).readers(before)  # each writes what is named like it
        if [b.name for b in readers] == [block.name]:
            sch.compute_at(before, point)


def _schedule_sum(
    sch: Schedule, block: Block, after: list[Block], constants: frozenset[str], target: GpuTarget
) -> None:
    """A sum by groups of threads, and the formulas that use it."""
    _pack(sch, block, constants)
    tile = _tile(sch, facts_of(sch.func).block(block.name), target)
    outer, row = sch.split(loop_of(tile.row), [None, tile.rows])
    panel, unit = sch.split(loop_of(tile.unit), [None, tile.units])
    depth = loop_of(reductions(block)[0])
    part, ahead, lane, piece = sch.split(depth, [None, tile.ahead, target.warp, tile.width])
    gate = loop_of(tile.gate)
    sch.reorder(outer, panel, gate, unit, lane, part, ahead, row, piece)
    grid = str(sch.fuse(outer, panel))
    summed = block.writes[0].buffer
    for formula in after:
        for loop in sch.reverse_compute_at(formula.name, grid):
            sch.bind(loop, "thread")
    _share_sum(sch, block, [gate, unit, lane], [part, ahead, row, piece])
    sch.set_scope(summed, "shared")
    sch.bind(grid, "grid")


def _share_sum(sch: Schedule, block: Block, threads: list[str], inner: list[str]) -> None:
    """Partial sums, one of each row for a thread, which its group then combines."""
    name, row = block.name, spatial(block)[1].name
    partial = str(sch.rfactor(name, threads[-1]))
    sch.set_scope(facts_of(sch.func).block(partial).writes[0].buffer, "register")
    for loop in threads:
        sch.bind(loop, "thread")
    if facts_of(sch.func).block(partial).init is not None:
        sch.decompose_reduction(partial, inner[0])
    _bind_all(sch, f"{partial}.init", row)
    for loop in inner[1:]:
        sch.unroll(loop)
    sch.bind(own_loops(sch, facts_of(sch.func).block(name))[-1], "combine")
    _bind_all(sch, name, row)


def _bind_all(sch: Schedule, name: str, row: str) -> None:
    """The loops of a block by threads, but for those over rows, which a thread has all of."""
    block = facts_of(sch.func).block(name)
    rows = next(free_vars(it.binding) for it in block.iters if it.name == row)
    for loop in own_loops(sch, block):
        if loop in rows:
            sch.unroll(loop)
        elif find_loop(sch.func, loop).kind == "serial":
            sch.bind(loop, "thread")


def _tile(sch: Schedule, block: Block, target: GpuTarget) -> _Tile:
    """As many units as threads allow, fewer where multiprocessors would be without."""
    row, gate, unit = spatial(block)[1:]
    rows = min(ROWS, as_int(row.extent) or SYMBOLIC_ROWS)
    groups = THREADS // target.warp
    units = max(1, groups // typical_extent(gate.extent))
    units = 1 << units.bit_length() - 1
    tiles = -(-typical_extent(row.extent) // rows) * typical_extent(unit.extent)
    while units > 1 and tiles // units < target.multiprocessors:
        units //= 2
    width = _width(sch, block, target)
    pieces = -(-typical_extent(reductions(block)[0].extent) // (target.warp * width))
    return _Tile(row, gate, unit, rows, units, width, gcd(pieces, AHEAD))


def _width(sch: Schedule, block: Block, target: GpuTarget) -> int:
    """How many neighbours of the sum a thread reads at once."""
    depth = reductions(block)[0]
    length = as_int(depth.extent)
    buffers = facts_of(sch.func).buffers
    near = all(flat_stride(x, buffers[x.buffer], depth.name) == 1 for x in reads_of(block))
    if length is None or not near:
        return 1
    return gcd(length, target.lanes(max(x.dtype.bits for x in reads_of(block))))


def _pack(sch: Schedule, block: Block, constants: frozenset[str]) -> None:
    """Constant weights with what is summed innermost."""
    block = facts_of(sch.func).block(block.name)
    unit, depth = spatial(block)[-1], reductions(block)[0]
    for load in reads_of(block):
        if load.buffer in constants and uses(load, unit.name):
            order = [unit.name, spatial(block)[-2].name, depth.name]
            sch.transform_layout(load.buffer, [(_position(load, axis), 0, 0) for axis in order])


def _position(load: Load, axis: str) -> int:
    return next(n for n, i in enumerate(load.indices) if i is Var(axis))
