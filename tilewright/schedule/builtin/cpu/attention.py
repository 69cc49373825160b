"""Attention: both GEMMs and the softmax of a block of rows in one parallel task.

    parallel (batch, block of rows)
      for keys
        x = scores in register tiles, masked in the epilogue
        row by row: maximum, exponentials, sum
        o = weighted values in register tiles

Everything between the two GEMMs stays in a buffer of the thread that fits the caches. Operands B of
the GEMMs are copied into panels of one tile's columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

from tilewright.arith.affine import to_affine
from tilewright.arith.expr import Load, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.annotations import PARTITION
from tilewright.ir.loop.nodes import Block, For, Func, Iter, Seq
from tilewright.ir.loop.walk import blocks, loops, loops_above
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    allows_narrow_accumulation,
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
from tilewright.schedule.analysis.dataflow import has_independent_iterations
from tilewright.schedule.builtin.cpu.attention_amx import is_amx_gemm, schedule_amx_gemm
from tilewright.schedule.builtin.cpu.epilogue import fuse_epilogue, unroll_and_vectorize
from tilewright.schedule.builtin.cpu.gemm.microkernel import Microkernel, MicrokernelProblem
from tilewright.schedule.builtin.cpu.gemm.microkernel_model import choose_tile
from tilewright.schedule.builtin.cpu.injective import UNROLL
from tilewright.schedule.builtin.cpu.parallelize import fuse_parallel, is_parallel
from tilewright.schedule.builtin.cpu.simd_reduction import combine_lanes
from tilewright.schedule.intrin.cpu.amx import COLUMNS, DEPTH
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# Batches for each core that balance the load of threads.
BATCHES_PER_CORE = 4
# Vectors of a row in one iteration.
WIDTHS = (1, 2, 4, 8)


@dataclass(frozen=True)
class _Panel:
    """How a copy is laid out: the axis and width of its panels, and the loops that index it.

    A vector of it has `lanes`. With `pairs`, two elements of the other axis are adjacent (VNNI).
    """

    column: str
    columns: int
    lanes: int
    loops: frozenset[str]
    pairs: bool = False


def tasks_loop(func: Func) -> For | None:
    """The loop that holds several nests, reductions among them, in independent iterations."""
    for loop in loops(func.body):
        if isinstance(loop.body, Seq) and any(reductions(b) for b in blocks(loop)):
            return loop if has_independent_iterations(loop) else None
    return None


def schedule_attention(sch: Schedule, tasks: For, target: CpuTarget) -> None:
    """Schedule the nests in the loop `tasks`, and the copies before it."""
    inside = list(blocks(tasks))
    names = {b.name for b in inside}
    before = [b for b in block_graph(sch.func).blocks if b.name not in names]
    shared = {loop.name for loop in loops_above(sch.func, inside[0].name)} - _own_loops(inside[0])
    shared |= {loop.name for loop in loops(tasks) if isinstance(loop.body, Seq)}
    panels: dict[str, _Panel] = {}
    done: set[str] = set()
    for number, block in enumerate(inside):
        if block.name in done:
            continue
        if not reductions(block):
            _vectorize(sch, block, shared, target)
        elif _is_gemm(block):
            after = _epilogue(inside[number + 1 :], block)
            panels.update(_schedule_gemm(sch, block, after, shared, target))
            done.update(() if after is None else (after.name,))
        else:
            _reduce_rows(sch, block, target)
    around = [loop for loop in loops_above(sch.func, inside[0].name) if loop.name in shared]
    outer = around[: [loop.name for loop in around].index(tasks.name) + 1]
    parallel = is_parallel(sch, tasks.name, sum(op_count(b) for b in inside))
    copies = [(block, panels[block.writes[0].buffer]) for block in before]
    above = _above_copies(outer[:-1], [panel for _, panel in copies])
    enough = _enough(above, target)
    if sch.choose(f"{tasks.name}.copies", enough, lambda: (False, True) if above else (False,)):
        for block, panel in copies:
            _copy_at(sch, block, outer[:-1], panel)
        outer = above
    else:
        for block, panel in copies:
            _copy_all(sch, block, panel)
    if parallel:
        fuse_parallel(sch, tasks.name, [loop.name for loop in outer])


def _above_copies(batches: list[For], copied: list[_Panel]) -> list[For]:
    """The loops above all copies, each of which is in the last loop that it depends on."""
    depths = [
        max((n for n, loop in enumerate(batches) if loop.name in panel.loops), default=0)
        for panel in copied
    ]
    return batches[: min(depths) + 1] if depths else batches


def _enough(batches: list[For], target: CpuTarget) -> bool:
    """Whether batches alone keep all cores busy; each is then copied inside its iteration."""
    count = prod(as_int(loop.extent) or 1 for loop in batches)
    return bool(batches) and (count % target.cores == 0 or count >= BATCHES_PER_CORE * target.cores)


def _own_loops(block: Block) -> set[str]:
    """The loops of a block's own iterators, without those around several blocks."""
    return {f"{block.name}.{it.name}" for it in block.iters}


def _own(it: Iter, shared: set[str]) -> str:
    """The one loop of an iterator that is not in `shared`."""
    (name,) = free_vars(it.binding) - shared
    return name


def _is_gemm(block: Block) -> bool:
    return len({r.buffer for r in reads_of(block)}) > 1


def _epilogue(after: list[Block], block: Block) -> Block | None:
    """The only block that reads a GEMM's result, if there is only one."""
    buffer = block.writes[0].buffer
    readers = [b for b in after if any(r.buffer == buffer for r in b.reads)]
    return readers[0] if len(readers) == 1 else None


def _step(sch: Schedule, block: Block, loop: str) -> int:
    """A number that the extent of a loop is a multiple of."""
    found = next(f for f in loops_above(sch.func, block.name) if f.name == loop)
    form = to_affine(found.extent)
    return gcd(form.gcd(), form.constant)


def _schedule_gemm(
    sch: Schedule, block: Block, after: Block | None, shared: set[str], target: CpuTarget
) -> dict[str, _Panel]:
    """One GEMM in register tiles; the panels in which it reads its operand B."""
    if allows_narrow_accumulation(block):
        sch.narrow_accumulator(block.name)
        block = block_graph(sch.func).block(block.name)
    column = spatial(block)[-1]
    if after is not None and is_amx_gemm(block, after, target):
        operand = schedule_amx_gemm(sch, block, after, shared)
        used = {v for it in spatial(block) if uses(operand, it.name) for v in free_vars(it.binding)}
        own = frozenset(used & shared)
        return {operand.buffer: _Panel(column.name, COLUMNS, COLUMNS, own, pairs=True)}
    panel = next(r for r in reads_of(block) if uses(r, column.name))
    graph = block_graph(sch.func)
    row = next(it for it in spatial(block) if _is_row(it, shared, panel, column))
    steps = _step(sch, block, _own(row, shared)), _step(sch, block, loop_of(column))
    tile = _choose(sch, block, steps, column, panel, target)
    found: dict[str, _Panel] = {}
    if not _is_parameter(sch.func, panel.buffer):
        # Past the last column a panel has zeros: what memory held may be slow to multiply with.
        sch.pad(_writer(graph, panel.buffer), column.name, tile.nr, fill="zeros")
        _lay_out(sch, panel, block, column, tile)
        used = {v for it in spatial(block) if uses(panel, it.name) for v in free_vars(it.binding)}
        loops = frozenset(used & shared)
        found[panel.buffer] = _Panel(column.name, tile.nr, tile.lanes, loops)
    elif flat_stride(panel, graph.buffers[panel.buffer], column.name) != 1:
        _schedule_dot(sch, block, target)
        return {} if after is None else _leave(sch, after, shared, target)
    if found and as_int(simplify(column.extent % tile.nr)) != 0:
        sch.pad(block.name, column.name, tile.nr)
    _tile(sch, block, after, (_own(row, shared), loop_of(column)), tile)
    return found


def _writer(graph: BlockGraph, buffer: str) -> str:
    return next(b.name for b in graph.blocks if b.writes[0].buffer == buffer)


def _leave(sch: Schedule, after: Block, shared: set[str], target: CpuTarget) -> dict[str, _Panel]:
    _vectorize(sch, after, shared, target)
    return {}


def _is_row(it: Iter, shared: set[str], panel: Load, column: Iter) -> bool:
    free = bool(free_vars(it.binding) - shared)
    return free and it is not column and not uses(panel, it.name)


def _is_parameter(func: Func, buffer: str) -> bool:
    return any(p.name == buffer for p in func.params)


def _choose(
    sch: Schedule,
    block: Block,
    steps: tuple[int, int],
    column: Iter,
    panel: Load,
    target: CpuTarget,
) -> Microkernel:
    """A tile whose rows divide the block of rows; its columns divide N where that is not padded."""
    bits = value_of(block).dtype.bits
    lanes = target.lanes(bits)
    last = reductions(block)[-1]
    scalars = [r for r in reads_of(block) if r is not panel]
    graph = block_graph(sch.func)
    by_lane = (
        target.has_lane_fma
        and as_int(simplify(last.extent % lanes)) == 0
        and all(flat_stride(r, graph.buffers[r.buffer], last.name) == 1 for r in scalars)
    )
    problem = MicrokernelProblem(
        m=steps[0],
        n=typical_extent(column.extent),
        k=prod(typical_extent(it.extent) for it in reductions(block)),
        bits=bits,
        reuses_b=True,
        lane_fma=by_lane,
    )
    tile = choose_tile(sch, block.name, problem, target)
    height = max(n for n in range(1, tile.mr + 1) if steps[0] % n == 0)
    columns = tile.nr
    if not all(i is Var(column.name) for i in panel.indices if column.name in free_vars(i)):
        lanes = gcd(lanes, steps[1])  # a block of keys may be shorter than a vector
        columns = max(n for n in range(lanes, columns + 1, lanes) if steps[1] % n == 0)
    return Microkernel(height, columns, lanes, by_lane)


def _lay_out(sch: Schedule, panel: Load, block: Block, column: Iter, tile: Microkernel) -> None:
    """Lay B out as batch, panel, K, column of the panel."""
    dims = range(len(panel.indices))
    moving = next(d for d in dims if column.name in free_vars(panel.indices[d]))
    summed = {it.name for it in reductions(block)}
    inner = [d for d in dims if d != moving and summed & free_vars(panel.indices[d])]
    outer = [d for d in dims if d != moving and d not in inner]
    order = [*((d, 0, 0) for d in outer), (moving, tile.nr, 0), *((d, 0, 0) for d in inner)]
    sch.transform_layout(panel.buffer, [*order, (moving, tile.nr, 1)])


def _tile(
    sch: Schedule, block: Block, after: Block | None, axes: tuple[str, str], tile: Microkernel
) -> None:
    if after is None:
        sch.cache_write(block.name, "register")
    row_tile, row = sch.split(axes[0], [None, tile.mr])
    panel, columns = sch.split(axes[1], [None, tile.nr])
    vector, lane = sch.split(columns, [None, tile.lanes])
    sums = [loop_of(it) for it in reductions(block)]
    steps: list[str] = []
    if tile.lane_fma:
        sums[-1], inner = sch.split(sums[-1], [None, tile.lanes])
        steps = [inner]
    sch.reorder(panel, row_tile, *sums, *steps, row, vector, lane)
    if after is not None:
        fuse_epilogue(sch, after.name, row_tile, tile.lanes)
    unroll_and_vectorize(sch, *steps, row, vector, lane)
    sch.decompose_reduction(block.name, sums[0])
    sch.set_scope(block.writes[0].buffer, "register")


def _schedule_dot(sch: Schedule, block: Block, target: CpuTarget) -> None:
    """A GEMM by dot products along K: both operands are read sequentially."""
    _reduce_rows(sch, block, target)


def _reduce_rows(sch: Schedule, block: Block, target: CpuTarget) -> None:
    """A reduction along rows: one partial result for each lane, then over the lanes."""
    lanes = target.lanes(value_of(block).dtype.bits)
    axis = reductions(block)[-1]
    extent = _step(sch, block, loop_of(axis))
    if extent % lanes:
        sch.decompose_reduction(block.name, loop_of(reductions(block)[0]))
        return
    factor = lanes * _vectors(sch, block, extent // lanes)
    _, inner = sch.split(loop_of(axis), [None, factor])
    partial = sch.rfactor(block.name, inner)
    final = [f.name for f in loops_above(sch.func, block.name)]
    lane, *rest = sch.compute_at(partial, final[-2])
    sch.reorder(*rest, lane)
    sch.vectorize(lane)
    moved = block_graph(sch.func).block(partial)
    if reductions(moved):
        sch.decompose_reduction(partial, loop_of(reductions(moved)[0]))
    combine_lanes(sch, block.name, factor, lanes)


def _vectorize(sch: Schedule, block: Block, shared: set[str], target: CpuTarget) -> None:
    """An elementwise block: the last of its own axes vectorized."""
    own = [it for it in spatial(block) if free_vars(it.binding) - shared]
    last = _own(own[-1], shared)
    lanes = target.lanes(value_of(block).dtype.bits)
    extent = _step(sch, block, last)
    if extent >= lanes:
        _, inner = sch.split(last, [None, lanes * _vectors(sch, block, max(1, extent // lanes))])
        sch.vectorize(inner)


def _vectors(sch: Schedule, block: Block, count: int) -> int:
    """How many vectors of a row of `count` an iteration has; there is no remainder."""
    return sch.choose(
        f"{block.name}.width", gcd(UNROLL, count), lambda: [n for n in WIDTHS if count % n == 0]
    )


def _copy_at(sch: Schedule, block: Block, batches: list[For], panel: _Panel) -> None:
    """Copy an operand inside the loop over batches."""
    last = [loop.name for loop in batches if loop.name in panel.loops][-1:]
    made = sch.compute_at(block.name, *(last or [batches[0].name]))
    _into_panels(sch, block, dict(zip((it.name for it in block.iters), made, strict=True)), panel)


def _copy_all(sch: Schedule, block: Block, panel: _Panel) -> None:
    """Copy an operand for all batches, in parallel."""
    outer = _into_panels(sch, block, {it.name: loop_of(it) for it in spatial(block)}, panel)
    if is_parallel(sch, block.name, op_count(block)):
        fuse_parallel(sch, block.name, outer)


def _into_panels(sch: Schedule, block: Block, axes: dict[str, str], panel: _Panel) -> list[str]:
    """A copy with the columns of a panel innermost; the loops over batches and panels.

    With pairs, it is vectorized along what is contiguous: columns, or every second element of K.
    Without, rows along K are transposed in squares of registers.
    """
    outer, inner = sch.split(axes.pop(panel.column), [None, panel.columns])
    *batches, rest = axes.values()
    graph = block_graph(sch.func)
    (read,) = reads_of(graph.block(block.name))
    transposes = flat_stride(read, graph.buffers[read.buffer], [*axes][-1]) == 1
    if transposes and panel.pairs:
        steps, lane, pair = sch.split(rest, [None, DEPTH // 2, 2])
        sch.reorder(*batches, outer, inner, steps, pair, lane)
        sch.unroll(pair)
        sch.vectorize(lane)
        return [*batches, outer]
    vector, lane = sch.split(inner, [None, panel.lanes])
    sch.reorder(*batches, outer, rest, vector, lane)
    if transposes:
        square, row = sch.split(rest, [None, panel.lanes])
        sch.reorder(square, vector, row, lane)
        sch.unroll(row)
        for loop in (square, row):
            sch.annotate(loop, PARTITION.key, 2)
    sch.unroll(vector)
    sch.vectorize(lane)
    return [*batches, outer]
