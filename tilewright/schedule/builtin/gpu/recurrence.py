"""Recurrences: steps one after another, each of them shared by all sm_count.

    for t in serial(T)
      grid: states                          what comes before the first sum
      grid: some rows, all gates of some units
        thread (gate, unit, lane): held = weights[unit, gate, pieces]
        thread (row, unit):        ahead = inputs[t]
        thread:                    near = state                shared, 16 bytes at a time
        thread (gate, unit, lane): part[row] += near[row, piece] * held[piece]
        allreduce (lanes):         sums[row, gate, unit] = part[row]
        thread (row, unit):        state, outputs = formulas(sums, ahead)

Where there are several steps, and sm_count have room for all weights, each stays with its
part of them for all steps: the loop is one launch (`finalize/gpu/grid_sync.py`). Otherwise a grid
loop in a serial one is launched once for each of its iterations, and weights are read as they are
needed. Constant weights are packed at compile time, so that what is summed lies side by side.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tilewright.arith.expr import Load, Var, as_int
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.annotations import GRID_SYNC
from tilewright.ir.loop.nodes import Block, For, Func, Iter
from tilewright.ir.loop.walk import blocks, find_loop
from tilewright.schedule.analysis.blocks import (
    block_graph,
    flat_stride,
    is_simple,
    loop_of,
    reads_of,
    reductions,
    spatial,
    typical_extent,
    uses,
    value_of,
)
from tilewright.schedule.builtin.cpu.recurrence import steps_loop
from tilewright.schedule.builtin.gpu.recurrence_epilogue import place_formulas, read_ahead
from tilewright.schedule.builtin.gpu.recurrence_tensor_core import (
    has_matrix_steps,
    schedule_matrix_sum,
)
from tilewright.schedule.builtin.gpu.thread_per_element import (
    bind_points,
    leading_spatial,
    own_loops,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Products of a step from which on it is worth launches of its own: one block of threads has done
# as many in the time of these.
SHARED_PRODUCTS = 8_192
# Threads of a block, and the rows that each has sums of.
THREADS, ROWS = 512, 8
# The rows that a thread may have sums of in blocks that stay, if a step has one sum; a quarter of
# them where it has two. Of more some would not be in registers.
MOST_ROWS = 16
# Pieces that a thread reads before it adds them.
AHEAD = 4
# Bytes of a register.
WORD = 4
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


def schedule_recurrence(
    sch: Schedule, steps: For, constants: frozenset[str], target: GpuTarget
) -> None:
    """Schedule every nest in the loop `steps`, which itself stays as it is."""
    found = list(blocks(steps))
    starts = [n for n, b in enumerate(found) if reductions(b)]
    _schedule_states(sch, found[: starts[0]])
    sums = [
        (found[first], found[first + 1 : end])
        for first, end in zip(starts, [*starts[1:], len(found)], strict=True)
    ]
    by_matrix = [has_matrix_steps(block, constants, target) for block, _ in sums]
    rows = MOST_ROWS // len(sums) ** 2
    fits = [_staying_units(block, target, rows) > 0 for block, _ in sums]
    several = as_int(steps.extent) != 1  # nobody waits after the only one
    stays = several and all(one or other for one, other in zip(by_matrix, fits, strict=True))
    for matrix, (block, after) in zip(by_matrix, sums, strict=True):
        _pack(sch, block, constants)
        if matrix and stays:
            schedule_matrix_sum(sch, block, after, target)
        else:
            _schedule_sum(sch, block, after, target, stays)
    if stays:
        sch.annotate(steps.name, GRID_SYNC.key, 1)


def _schedule_states(sch: Schedule, states: list[Block]) -> None:
    """What comes before the first sum: one that only the next reads is computed with that."""
    for before, block in zip(("", *(b.name for b in states)), states, strict=False):
        point = bind_points(sch, leading_spatial(sch, block))
        readers = block_graph(sch.func).consumers(before)  # each writes what is named like it
        if [b.name for b in readers] == [block.name]:
            sch.compute_at(before, point)


def _schedule_sum(
    sch: Schedule,
    block: Block,
    after: list[Block],
    target: GpuTarget,
    stays: bool,
) -> None:
    """A sum by groups of threads, and the formulas that use it."""
    tile = _tile(sch, block_graph(sch.func).block(block.name), target, stays)
    states = [x.buffer for x in reads_of(block) if stays and not uses(x, tile.unit.name)]
    copies = [sch.cache_read(block.name, state, "shared") for state in states]
    outer, row = sch.split(loop_of(tile.row), [None, tile.rows])
    panel, unit = sch.split(loop_of(tile.unit), [None, tile.units])
    depth = loop_of(reductions(block)[0])
    part, ahead, lane, piece = sch.split(depth, [None, tile.ahead, target.warp_size, tile.width])
    gate = loop_of(tile.gate)
    sch.reorder(outer, panel, gate, unit, lane, part, ahead, row, piece)
    grid = str(sch.fuse(outer, panel))
    sch.bind(grid, "grid")
    summed = block.writes[0].buffer
    for copy in copies:
        _copy_state(sch, copy, grid, tile, target)
    place_formulas(sch, after, grid)
    if stays:
        _hold_weights(sch, block.name, grid, tile, target)
        read_ahead(sch, after, grid)
    _share_sum(sch, block, [gate, unit, lane], [part, ahead, row, piece])
    sch.set_scope(summed, "shared")


def _copy_state(sch: Schedule, name: str, grid: str, tile: _Tile, target: GpuTarget) -> None:
    """The state of all rows in shared memory: every group of threads reads all of it."""
    gates = typical_extent(tile.gate.extent)
    threads = gates * tile.units * target.warp_size
    point = sch.fuse(*sch.compute_at(name, grid))
    part, thread, piece = sch.split(point, [None, threads, tile.width])
    sch.reorder(thread, part, piece)
    sch.bind(thread, "thread")
    sch.unroll(part)
    if tile.width > 1:
        sch.vectorize(piece)


def _hold_weights(sch: Schedule, name: str, grid: str, tile: _Tile, target: GpuTarget) -> None:
    """Weights in registers, of each thread what it sums."""
    block = block_graph(sch.func).block(name)
    depth = reductions(block)[0].name
    (load,) = (x for x in reads_of(block) if uses(x, tile.unit.name))
    copy = sch.cache_read(name, load.buffer, "register")
    axes = sch.compute_at(copy, grid)
    gate, unit, summed = (axes[_position(load, n)] for n in (tile.gate.name, tile.unit.name, depth))
    part, ahead, lane, piece = sch.split(summed, [None, tile.ahead, target.warp_size, tile.width])
    sch.reorder(gate, unit, lane, part, ahead, piece)
    for loop in (gate, unit, lane):
        sch.bind(loop, "thread")
    for loop in (part, ahead, piece):
        sch.unroll(loop)


def _share_sum(sch: Schedule, block: Block, threads: list[str], inner: list[str]) -> None:
    """Partial sums, one of each row for a thread, which its group then combines."""
    name, row = block.name, spatial(block)[1].name
    partial = str(sch.rfactor(name, threads[-1]))
    sch.set_scope(block_graph(sch.func).block(partial).writes[0].buffer, "register")
    for loop in threads:
        sch.bind(loop, "thread")
    if block_graph(sch.func).block(partial).init is not None:
        sch.decompose_reduction(partial, inner[0])
    _bind_all(sch, f"{partial}.init", row)
    once = as_int(find_loop(sch.func, inner[0]).extent) == 1
    for loop in inner if once else inner[1:]:
        sch.unroll(loop)
    sch.bind(own_loops(sch, block_graph(sch.func).block(name))[-1], "allreduce")
    _bind_all(sch, name, row)


def _bind_all(sch: Schedule, name: str, row: str) -> None:
    """The loops of a block by threads, but for those over rows, which a thread has all of."""
    block = block_graph(sch.func).block(name)
    rows = next(free_vars(it.binding) for it in block.iters if it.name == row)
    for loop in own_loops(sch, block):
        if loop in rows:
            sch.unroll(loop)
        elif find_loop(sch.func, loop).kind == "serial":
            sch.bind(loop, "thread")


def _staying_units(block: Block, target: GpuTarget, most_rows: int = MOST_ROWS) -> int:
    """The units of a block of threads where all stay, one a multiprocessor; 0 if they cannot.

    The weights take registers, as do the sums of all rows; as many are left for all else.
    """
    row, gate, unit = (as_int(it.extent) for it in spatial(block)[1:])
    depth = as_int(reductions(block)[0].extent)
    if row is None or gate is None or unit is None or depth is None or row > most_rows:
        return 0
    units = -(-unit // target.sm_count)
    threads = units * gate * target.warp_size
    size = value_of(block).dtype.bytes
    words = (-(-depth // target.warp_size) + row) * -(-size // WORD)
    if threads > target.threads_per_block:
        return 0
    most = min(target.registers_per_sm // threads, target.registers_per_thread) // 2
    wide = target.warp_size * target.lanes(min(x.dtype.bits for x in reads_of(block)))
    shared = (-(-depth // wide) * wide + units * gate) * row * size
    return units if words <= most and shared <= target.max_shared_per_block else 0


def _tile(sch: Schedule, block: Block, target: GpuTarget, stays: bool) -> _Tile:
    """As many units as threads allow, fewer where sm_count would be without."""
    row, gate, unit = spatial(block)[1:]
    rows = min(ROWS, as_int(row.extent) or SYMBOLIC_ROWS)
    groups = THREADS // target.warp_size
    units = max(1, groups // typical_extent(gate.extent))
    units = 1 << units.bit_length() - 1
    tiles = -(-typical_extent(row.extent) // rows) * typical_extent(unit.extent)
    while units > 1 and tiles // units < target.sm_count:
        units //= 2
    width = _width(sch, block, target)
    pieces = -(-typical_extent(reductions(block)[0].extent) // (target.warp_size * width))
    if stays:
        rows, units = typical_extent(row.extent), _staying_units(block, target)
        return _Tile(row, gate, unit, rows, units, width, pieces)
    return _Tile(row, gate, unit, rows, units, width, gcd(pieces, AHEAD))


def _width(sch: Schedule, block: Block, target: GpuTarget) -> int:
    """How many neighbours of the sum a thread reads at once."""
    depth = reductions(block)[0]
    length = as_int(depth.extent)
    buffers = block_graph(sch.func).buffers
    near = all(flat_stride(x, buffers[x.buffer], depth.name) == 1 for x in reads_of(block))
    if length is None or not near:
        return 1
    return gcd(length, target.lanes(max(x.dtype.bits for x in reads_of(block))))


def _pack(sch: Schedule, block: Block, constants: frozenset[str]) -> None:
    """Constant weights with what is summed innermost."""
    block = block_graph(sch.func).block(block.name)
    unit, depth = spatial(block)[-1], reductions(block)[0]
    for load in reads_of(block):
        if load.buffer in constants and uses(load, unit.name):
            order = [unit.name, spatial(block)[-2].name, depth.name]
            sch.transform_layout(load.buffer, [(_position(load, axis), 0, 0) for axis in order])


def _position(load: Load, axis: str) -> int:
    return next(n for n, i in enumerate(load.indices) if i is Var(axis))
