"""Steps of recurrences in 16 bits on tensor cores: weights stay in shared memory.

grid: 16 rows, all gates of 16 units
  threads: weights = those of these units               shared, once for all steps
  threads: state = all units of these rows              shared, 16 bytes at a time
  warp (part, gate): C = 0                              fragments
  warp (part, gate): C += state * weights               some of the state, 16 units at a time
  thread (part, gate, lane): partials = C               shared
  thread (row, unit): sums = sum of partials            registers
                      state, outputs = epilogue(sums)
"""

from __future__ import annotations

from math import gcd

from tilewright.arith.expr import as_int
from tilewright.ir.loop.nodes import Block
from tilewright.ir.loop.thread_mapping import FRAGMENT
from tilewright.ir.loop.walk import loops_above
from tilewright.schedule.analysis.blocks import (
    block_graph,
    index_position,
    loop_of,
    reads_of,
    reductions,
    spatial,
    uses,
)
from tilewright.schedule.builtin.gpu.recurrence_epilogue import place_epilogue, prefetch_inputs
from tilewright.schedule.builtin.gpu.smem_copy import copy_by_threads
from tilewright.schedule.builtin.gpu.thread_per_element import own_loops
from tilewright.schedule.intrin.nvidia.mma import MMA_K, MMA_M, MMA_N, VECTOR_ELEMENTS, mma_names
from tilewright.schedule.schedule import Schedule
from tilewright.target.gpu import GpuTarget

# A row in shared memory is a multiple of 128 bytes, as the swizzle needs: so many elements
# (`schedule/intrin/nvidia/mma.py`).
SWIZZLE_ELEMENTS = 64
# Units of a block: two instructions along N.
UNITS = 2 * MMA_N
# Warps of a block: each accumulates a part of K for one gate.
WARPS = 16
# The operands whose step is `MMA_K` elements.
HALVES = {"f16", "bf16"}
# With fewer rows, of the 16 that an instruction has, reductions by warps are faster.
MIN_ROWS = 6


def fits_tensor_cores(block: Block, constants: frozenset[str], target: GpuTarget) -> bool:
    """Whether a cooperative launch on tensor cores can hold all weights in shared memory."""
    row, gate, unit = (as_int(it.extent) for it in spatial(block)[1:])
    depth = as_int(reductions(block)[0].extent)
    if row is None or gate is None or unit is None or depth is None or row < MIN_ROWS:
        return False
    kinds = {str(x.dtype) for x in reads_of(block)}
    known = all(target.warp_mma(kind) is not None for kind in kinds)
    weights = [x for x in reads_of(block) if uses(x, spatial(block)[-1].name)]
    steady = all(x.buffer in constants for x in weights) and len(weights) == 1
    if (
        not (kinds <= HALVES and len(kinds) == 1 and known and steady)
        or unit % UNITS
        or depth % SWIZZLE_ELEMENTS
    ):
        return False
    blocks = -(-row // MMA_M) * unit // UNITS
    sums = MMA_M * UNITS * gate * _parts(gate, depth)
    shared = (UNITS * gate + MMA_M) * depth * 2 + sums * 4
    return blocks <= target.sm_count and shared <= target.max_shared_per_block


def schedule_tensor_core_step(
    sch: Schedule, block: Block, after: list[Block], target: GpuTarget
) -> None:
    """A GEMM on tensor cores, and its epilogue; weights are packed."""
    name = block.name
    block = block_graph(sch.func).block(name)
    row, gate, unit = spatial(block)[1:]
    (weights,) = (x for x in reads_of(block) if uses(x, unit.name))
    (state,) = (x for x in reads_of(block) if not uses(x, unit.name))
    copies = [sch.cache_read(name, x.buffer, "shared") for x in (weights, state)]
    sch.pad(copies[1], f"v{index_position(state, row.name)}", MMA_M)
    sch.pad(name, row.name, MMA_M)
    parts = _parts(as_int(gate.extent) or 1, as_int(reductions(block)[0].extent) or MMA_K)
    outer, m = sch.split(loop_of(row), [None, MMA_M])
    panel, n = sch.split(loop_of(unit), [None, UNITS])
    part, steps, k = sch.split(loop_of(reductions(block)[0]), [parts, None, MMA_K])
    warp = loop_of(gate)
    sch.reorder(outer, panel, part, warp, steps, m, n, k)
    grid = str(sch.fuse(outer, panel))
    partial = str(sch.rfactor(name, part))
    write = sch.cache_write(partial, FRAGMENT)
    fragment = block_graph(sch.func).block(partial).writes[0].buffer
    sch.transform_layout(fragment, [(axis, 0, 0) for axis in (0, 1, 3, 2, 4)])
    sch.bind(grid, "grid")
    for loop in (part, warp):
        sch.bind(loop, "warp")
    sch.unroll(steps)
    threads = parts * (as_int(gate.extent) or 1) * target.warp_size
    for copy in copies:
        copy_by_threads(sch, sch.compute_at(copy, grid), threads, VECTOR_ELEMENTS)
    init = sch.decompose_reduction(partial, steps)
    mma = target.warp_mma(str(state.dtype))
    assert mma is not None
    zero, step = mma_names(str(state.dtype), MMA_M, UNITS, "nt", mma.k)
    sch.tensorize(sch.blockize(loops_above(sch.func, init)[-2].name), zero)
    sch.tensorize(sch.blockize(m), step)
    _store_partials(sch, write, grid)
    sch.reverse_compute_at(name, grid)
    place_epilogue(sch, after, grid)
    _sum_parts(sch, name)
    prefetch_inputs(sch, after, grid)


def _parts(gates: int, depth: int) -> int:
    """The split-K factor that gives all warps a part."""
    most = max(1, WARPS // gates)
    return gcd(depth // MMA_K, 1 << most.bit_length() - 1)


def _sum_parts(sch: Schedule, name: str) -> None:
    """Add up the partials: in the thread of the epilogue, or before all of its threads."""
    graph = block_graph(sch.func)
    readers = graph.consumers(graph.block(name).writes[0].buffer)
    inner = loops_above(sch.func, readers[0].name)
    thread = next(n for n in reversed(inner) if n.kind == "thread").name
    alone = all(thread in {f.name for f in loops_above(sch.func, b.name)} for b in readers)
    if alone:
        sch.compute_at(name, thread)
    sch.set_scope(graph.block(name).writes[0].buffer, "register" if alone else "shared")
    step, row, gate, unit, part = own_loops(sch, block_graph(sch.func).block(name))
    if not alone:
        sch.reorder(row, unit, step, gate, part)
        for loop in (row, unit):
            sch.bind(loop, "thread")
    for loop in (step, gate, part) if not alone else (step, row, gate, unit, part):
        sch.unroll(loop)


def _store_partials(sch: Schedule, name: str, grid: str) -> None:
    """Store accumulators to shared memory."""
    sch.set_scope(block_graph(sch.func).block(name).writes[0].buffer, "shared")
    part, step, rows, gate, units = sch.reverse_compute_at(name, grid)
    eighth, row = sch.split(rows, [None, MMA_M // 2])
    n, column, pair = sch.split(units, [None, 4, 2])
    sch.reorder(part, gate, row, column, step, eighth, n, pair)
    for loop in (part, gate, row, column):
        sch.bind(loop, "thread")
    for loop in (step, eighth, n):
        sch.unroll(loop)
    sch.vectorize(pair)
