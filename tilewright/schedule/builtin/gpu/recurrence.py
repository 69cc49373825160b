"""Recurrences: steps one after another, each distributed over all SMs.

    for t in serial(T)
      grid: states                          what comes before the first sum
      grid: some rows, all gates of some units
        thread (gate, unit, lane): w = weights[unit, gate, vectors]      registers
        thread (row, unit):        x = inputs[t]                         registers, prefetched
        thread:                    s = state                             shared, 16 bytes at a time
        for groups of up to 16 rows
          thread (gate, unit, lane): part[row] += s[row, vector] * w[vector]
          allreduce (lanes):         sums[row, gate, unit] = part[row]
        thread (row, unit):        state, outputs = epilogue(sums, x)

Where there are several steps, and the registers of all SMs can hold the weights, the loop is one
cooperative launch, in which a block keeps its part of the weights for all steps
(`finalize/gpu/grid_sync.py`). Otherwise a grid loop in a serial one is launched once for each of
its iterations, and weights are read in each. Constant weights are packed at compile time, K-major.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from tilewright.arith.expr import as_int
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.annotations import GRID_SYNC
from tilewright.ir.loop.nodes import Block, For, Func, Iter
from tilewright.ir.loop.walk import blocks, find_loop
from tilewright.schedule.analysis.blocks import (
    block_graph,
    flat_stride,
    index_position,
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
from tilewright.schedule.builtin.gpu.recurrence_epilogue import place_epilogue, prefetch_inputs
from tilewright.schedule.builtin.gpu.recurrence_tensor_core import (
    fits_tensor_cores,
    schedule_tensor_core_step,
)
from tilewright.schedule.builtin.gpu.smem_copy import copy_by_threads
from tilewright.schedule.builtin.gpu.thread_per_element import (
    bind_points,
    divisors,
    leading_spatial,
    own_loops,
)
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# Multiplications of a step that are worth launches of their own: in the time of a launch, one block
# has done as many.
MIN_PRODUCTS = 8_192
# Threads of a block, and the rows that each has accumulators of.
THREADS, ROWS = 512, 8
# The rows that a thread may have accumulators of in a cooperative launch, if a step has one
# reduction; a quarter of them where it has two. More would spill: they come in groups.
MAX_ROWS = 16
# The units that a block may have.
UNITS = (1, 2, 4, 8, 16)
# Vectors that a thread reads before it adds them.
PREFETCH_VECTORS = 4
# Bytes of a register.
WORD = 4
# Rows where their number is not known.
SYMBOLIC_ROWS = 4


@dataclass(frozen=True)
class _Tile:
    """The axes of a reduction, and the rows and units of a block.

    A thread reads vectors of `width` elements along K, and `prefetch` of them before it adds them.
    """

    row: Iter
    gate: Iter
    unit: Iter
    rows: int
    units: int
    width: int
    prefetch: int


def shared_steps(func: Func) -> For | None:
    """The loop over steps that are worth a grid, if all of a function is in one."""
    loop = steps_loop(func)
    if loop is None or [*blocks(loop)] != [*blocks(func.body)]:
        return None
    sums = [b for b in blocks(loop) if reductions(b)]
    known = all(len(spatial(b)) == 4 and len(reductions(b)) == 1 for b in sums)
    if not known or not all(map(is_simple, blocks(loop))):
        return None
    return loop if max(map(_products, sums)) >= MIN_PRODUCTS else None


def _products(block: Block) -> int:
    total = 1
    for it in block.iters[1:]:
        total *= typical_extent(it.extent)
    return total


def schedule_recurrence(
    sch: Schedule, steps: For, constants: frozenset[str], target: GpuTarget
) -> None:
    """Schedule every nest in the loop `steps`, which stays serial."""
    found = list(blocks(steps))
    starts = [n for n, b in enumerate(found) if reductions(b)]
    _schedule_states(sch, found[: starts[0]])
    sums = [
        (found[first], found[first + 1 : end])
        for first, end in zip(starts, [*starts[1:], len(found)], strict=True)
    ]
    on_tensor_cores = [fits_tensor_cores(block, constants, target) for block, _ in sums]
    rows = MAX_ROWS // len(sums) ** 2
    fits = [_cooperative_units(block, target, rows) > 0 for block, _ in sums]
    # A single step needs no grid barrier.
    several = as_int(steps.extent) != 1 and target.has("cooperative")
    cooperative = several and all(
        one or other for one, other in zip(on_tensor_cores, fits, strict=True)
    )
    if cooperative:
        cooperative = sch.choose("cooperative", True, lambda: (False, True))
    for tensor_core, (block, after) in zip(on_tensor_cores, sums, strict=True):
        _pack(sch, block, constants)
        if tensor_core and cooperative:
            schedule_tensor_core_step(sch, block, after, target)
        else:
            _schedule_sum(sch, block, after, target, cooperative, rows)
    if cooperative:
        sch.annotate(steps.name, GRID_SYNC.key, 1)


def _schedule_states(sch: Schedule, states: list[Block]) -> None:
    """The blocks before the first reduction; one that only the next reads is computed in it."""
    for before, block in zip(("", *(b.name for b in states)), states, strict=False):
        point = bind_points(sch, leading_spatial(sch, block))
        readers = block_graph(sch.func).consumers(before)  # a block and its buffer have one name
        if [b.name for b in readers] == [block.name]:
            sch.compute_at(before, point)


def _schedule_sum(
    sch: Schedule,
    block: Block,
    after: list[Block],
    target: GpuTarget,
    cooperative: bool,
    most_rows: int,
) -> None:
    """A reduction by warps, and its epilogue."""
    tile = _tile(sch, block_graph(sch.func).block(block.name), target, cooperative, most_rows)
    states = [x.buffer for x in reads_of(block) if cooperative and not uses(x, tile.unit.name)]
    copies = [sch.cache_read(block.name, state, "shared") for state in states]
    outer, row = sch.split(loop_of(tile.row), [None, tile.rows])
    panel, unit = sch.split(loop_of(tile.unit), [None, tile.units])
    depth = loop_of(reductions(block)[0])
    part, prefetched, lane, vector = sch.split(
        depth, [None, tile.prefetch, target.warp_size, tile.width]
    )
    gate = loop_of(tile.gate)
    if cooperative:
        sch.reorder(panel, outer, gate, unit, lane, part, prefetched, row, vector)
        grid = panel
    else:
        sch.reorder(outer, panel, gate, unit, lane, part, prefetched, row, vector)
        grid = str(sch.fuse(outer, panel))
    sch.bind(grid, "grid")
    summed = block.writes[0].buffer
    for copy in copies:
        _copy_state(sch, copy, grid, tile, target)
    place_epilogue(sch, after, grid)
    if cooperative:
        _weights_to_registers(sch, block.name, grid, tile, target)
        prefetch_inputs(sch, after, grid)
    several = outer if cooperative and as_int(find_loop(sch.func, outer).extent) != 1 else ""
    _schedule_reduction(sch, block, [gate, unit, lane], [part, prefetched, row, vector], several)
    sch.set_scope(summed, "shared")


def _copy_state(sch: Schedule, name: str, grid: str, tile: _Tile, target: GpuTarget) -> None:
    """Copy the state of all rows to shared memory: every warp reads all of it."""
    gates = typical_extent(tile.gate.extent)
    threads = gates * tile.units * target.warp_size
    copy_by_threads(sch, sch.compute_at(name, grid), threads, tile.width)


def _weights_to_registers(
    sch: Schedule, name: str, grid: str, tile: _Tile, target: GpuTarget
) -> None:
    """Keep in the registers of each thread the weights that it multiplies."""
    block = block_graph(sch.func).block(name)
    depth = reductions(block)[0].name
    (load,) = (x for x in reads_of(block) if uses(x, tile.unit.name))
    copy = sch.cache_read(name, load.buffer, "register")
    axes = sch.compute_at(copy, grid)
    gate, unit, summed = (
        axes[index_position(load, n)] for n in (tile.gate.name, tile.unit.name, depth)
    )
    part, prefetched, lane, vector = sch.split(
        summed, [None, tile.prefetch, target.warp_size, tile.width]
    )
    sch.reorder(gate, unit, lane, part, prefetched, vector)
    for loop in (gate, unit, lane):
        sch.bind(loop, "thread")
    for loop in (part, prefetched, vector):
        sch.unroll(loop)


def _schedule_reduction(
    sch: Schedule, block: Block, threads: list[str], inner: list[str], several: str
) -> None:
    """Partial reductions, one of each row for a thread, and their all-reduce.

    Each iteration of a loop over `several` groups of rows has both.
    """
    name, row = block.name, spatial(block)[1].name
    partial = str(sch.rfactor(name, threads[-1]))
    sch.set_scope(block_graph(sch.func).block(partial).writes[0].buffer, "register")
    for loop in threads:
        sch.bind(loop, "thread")
    if block_graph(sch.func).block(partial).init is not None:
        sch.decompose_reduction(partial, inner[0])
    _bind_but_rows(sch, f"{partial}.init", row)
    once = as_int(find_loop(sch.func, inner[0]).extent) == 1
    for loop in inner if once else inner[1:]:
        sch.unroll(loop)
    if several:
        _, rows, *others, lanes = sch.reverse_compute_at(name, several)
        sch.reorder(*others, rows, lanes)
    sch.bind(own_loops(sch, block_graph(sch.func).block(name))[-1], "allreduce")
    _bind_but_rows(sch, name, row)


def _bind_but_rows(sch: Schedule, name: str, row: str) -> None:
    """Bind the loops of a block to threads, except those over rows, which a thread unrolls."""
    block = block_graph(sch.func).block(name)
    rows = next(free_vars(it.binding) for it in block.iters if it.name == row)
    for loop in own_loops(sch, block):
        if loop in rows:
            sch.unroll(loop)
        elif find_loop(sch.func, loop).kind == "serial":
            sch.bind(loop, "thread")


def _rows_at_a_time(rows: int, most: int) -> int:
    """All rows, or an equal part of them, of which a thread has accumulators."""
    return max(n for n in divisors(rows) if n <= most)


def _keeps_pace(block: Block, units: int, most_rows: int) -> bool:
    """Whether one launch for more rows than a thread has accumulators of is worth it.

    Every block then reads the states of all rows, launches the weights once for every `ROWS`. Rows
    that are no whole parts would need guards.
    """
    row, gate, unit = (typical_extent(it.extent) for it in spatial(block)[1:])
    if row <= most_rows:
        return True
    whole = 2 * _rows_at_a_time(row, most_rows) >= most_rows
    return whole and -(-unit // units) * row <= gate * unit * -(-row // ROWS)


def _cooperative_units(block: Block, target: GpuTarget, most_rows: int) -> int:
    """The units of a block in a cooperative launch, one block for each SM; 0 if they do not fit.

    Weights, and the accumulators of as many rows as are added up at a time, may take half of the
    registers; the states of all rows are in shared memory.
    """
    row, gate, unit = (as_int(it.extent) for it in spatial(block)[1:])
    depth = as_int(reductions(block)[0].extent)
    if row is None or gate is None or unit is None or depth is None:
        return 0
    units = -(-unit // target.sm_count)
    threads = units * gate * target.warp_size
    size = value_of(block).dtype.bytes
    words = (-(-depth // target.warp_size) + min(row, most_rows)) * -(-size // WORD)
    if threads > target.threads_per_block:
        return 0
    most = min(target.registers_per_sm // threads, target.registers_per_thread) // 2
    wide = target.warp_size * target.lanes(min(x.dtype.bits for x in reads_of(block)))
    shared = (-(-depth // wide) * wide + units * gate) * row * size
    fits = words <= most and shared <= target.max_shared_per_block
    return units if fits and _keeps_pace(block, units, most_rows) else 0


def _tile(
    sch: Schedule, block: Block, target: GpuTarget, cooperative: bool, most_rows: int
) -> _Tile:
    """As many units as threads allow, fewer where SMs would be idle."""
    row, gate, unit = spatial(block)[1:]
    rows = min(ROWS, as_int(row.extent) or SYMBOLIC_ROWS)
    groups = THREADS // target.warp_size
    units = max(1, groups // typical_extent(gate.extent))
    units = 1 << units.bit_length() - 1
    tiles = -(-typical_extent(row.extent) // rows) * typical_extent(unit.extent)
    most = units
    while units > 1 and tiles // units < target.sm_count:
        units //= 2
    width = _width(sch, block, target)
    vectors = -(-typical_extent(reductions(block)[0].extent) // (target.warp_size * width))
    if cooperative:
        rows = _rows_at_a_time(typical_extent(row.extent), most_rows)
        units = _cooperative_units(block, target, most_rows)
        return _Tile(row, gate, unit, rows, units, width, vectors)
    name = block.name
    units = sch.choose(f"{name}.units", units, lambda: [n for n in UNITS if n <= most])
    prefetch = gcd(vectors, PREFETCH_VECTORS)
    prefetch = sch.choose(f"{name}.prefetch", prefetch, lambda: divisors(prefetch))
    return _Tile(row, gate, unit, rows, units, width, prefetch)


def _width(sch: Schedule, block: Block, target: GpuTarget) -> int:
    """The elements along K that a thread reads at a time."""
    depth = reductions(block)[0]
    length = as_int(depth.extent)
    buffers = block_graph(sch.func).buffers
    near = all(flat_stride(x, buffers[x.buffer], depth.name) == 1 for x in reads_of(block))
    if length is None or not near:
        return 1
    return gcd(length, target.lanes(max(x.dtype.bits for x in reads_of(block))))


def _pack(sch: Schedule, block: Block, constants: frozenset[str]) -> None:
    """Pack constant weights K-major."""
    block = block_graph(sch.func).block(block.name)
    unit, depth = spatial(block)[-1], reductions(block)[0]
    for load in reads_of(block):
        if load.buffer in constants and uses(load, unit.name):
            order = [unit.name, spatial(block)[-2].name, depth.name]
            sch.transform_layout(
                load.buffer, [(index_position(load, axis), 0, 0) for axis in order]
            )
