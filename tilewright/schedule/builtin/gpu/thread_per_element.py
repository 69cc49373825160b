"""One thread for each point of the result, whatever it takes: right for every nest.

grid, thread: point
  s = 0
  for k: s += x[point, k]                    a sum is one thread's, in a register
  y[point] = f(s)

Where neighbouring points read neighbouring elements, and there are points enough, a thread has
several of them, and reads 16 bytes at a time.
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, Load, Var, as_int, product
from tilewright.arith.simplify import simplify
from tilewright.ir.loop.nodes import Block, Buffer
from tilewright.ir.loop.walk import find_loop, loops_above
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
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

# Threads of a block, where nothing speaks for another number.
THREADS = 256
# Parts of a sum from which on they are added one after another.
MOST_PARTS = 64
# What a thread reads at once, and what of memory comes at once.
PIECE_BYTES, SECTOR_BYTES = 16, 32
# Terms of a sum that one thread adds in no time, so that fewer threads will do.
FEW_TERMS = 64


def bind_points(sch: Schedule, loops: list[str], threads: int = THREADS) -> str:
    """Deal out the iterations of nested loops to threads; the loop that a thread is one of."""
    point = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    block, thread = sch.split(point, [None, threads])
    sch.bind(block, "grid")
    sch.bind(thread, "thread")
    return str(thread)


def threads_for(extents: list[Expr], target: GpuTarget) -> int:
    """Threads of a block for so many points: whole warps, no more than there are points."""
    points = typical_extent(simplify(product(tuple(extents))))
    return max(target.warp_size, min(THREADS, 1 << (points - 1).bit_length()))


def schedule_points(sch: Schedule, block: Block, target: GpuTarget) -> None:
    """One nest for itself; its spatial loops must be the outer ones, others run in each thread."""
    loops = leading_spatial(sch, block)
    if not loops:
        return
    threads = threads_for([find_loop(sch.func, loop).extent for loop in loops], target)
    if not (is_simple(block) and reductions(block)):
        bind_points(sch, loops, threads)
        return
    name = sch.cache_write(block.name, "local")
    copy = block_graph(sch.func).block(name)
    thread = bind_points(sch, [loop_of(it) for it in copy.iters], threads)
    sum_at(sch, block.name, thread)


def schedule_sum(sch: Schedule, name: str, target: GpuTarget, parts: bool = False) -> None:
    """A sum and the one block behind it, which reads of it what it writes itself at each point.

    A few `parts` are all read before they are added.
    """
    graph = block_graph(sch.func)
    last = graph.blocks[-1]
    loops = [loop_of(it) for it in spatial(last)]
    threads = threads_for([it.extent for it in spatial(last)], target)
    width = _width(graph, name, target)
    if width > 1:
        loops[-1], lane = sch.split(loops[-1], [None, width])
        sch.vectorize(lane)
    sum_at(sch, name, bind_points(sch, loops, threads), width)
    for it in reductions(block_graph(sch.func).block(name)):
        if parts and (as_int(it.extent) or MOST_PARTS) < MOST_PARTS:
            sch.unroll(loop_of(it))


def sum_at(sch: Schedule, name: str, thread: str, width: int = 1) -> None:
    """Compute a sum in a thread that needs one point of it, or some neighbours."""
    sch.compute_at(name, thread)
    block = block_graph(sch.func).block(name)
    sch.set_scope(block.writes[0].buffer, "local" if width == 1 else "register")
    reduced = {x for it in reductions(block) for x in (it.binding,)}
    first = next(f.name for f in loops_above(sch.func, name) if Var(f.name) in reduced)
    if width > 1:
        around = [f.name for f in loops_above(sch.func, name)]
        inner = [loop for loop in around if Var(loop) in reduced]
        lane = next(x for x in reversed(around) if x not in inner)
        sch.reorder(*inner, lane)
        sch.vectorize(lane)
    init = sch.decompose_reduction(name, first)
    if width > 1:
        sch.vectorize(loops_above(sch.func, init)[-1].name)


def _width(graph: BlockGraph, name: str, target: GpuTarget) -> int:
    """How many neighbours a thread computes: as many as 16 bytes are, if threads are left."""
    block, last = graph.block(name), graph.blocks[-1]
    axes = spatial(block)
    size = as_int(axes[-1].extent)
    same = [str(it.extent) for it in axes] == [str(it.extent) for it in spatial(last)]
    if size is None or not same or not has_neighbours(block, graph, target):
        return 1
    for b in (block, last):
        axis = spatial(b)[-1].name
        near = (flat_stride(r, graph.buffers[r.buffer], axis) for r in reads_of(b) if uses(r, axis))
        if any(stride != 1 for stride in near):
            return 1
    points = typical_extent(simplify(product(tuple(it.extent for it in axes))))
    width = PIECE_BYTES // max(r.dtype.bytes for r in reads_of(block))
    while width > 1 and (size % width or points < width * target.sm_count * THREADS):
        width //= 2
    return width


def has_neighbours(block: Block, graph: BlockGraph, target: GpuTarget) -> bool:
    """Whether there are points for all threads; where most is read, neighbours read neighbours."""
    axes = spatial(block)
    if not axes:
        return False
    points = typical_extent(simplify(product(tuple(it.extent for it in axes))))
    terms = typical_extent(simplify(product(tuple(it.extent for it in reductions(block)))))
    last = axes[-1].name
    reads = [r for r in reads_of(block) if uses(r, last)]
    threads = target.warp_size if terms <= FEW_TERMS else THREADS
    if points < target.sm_count * threads or not reads:
        return False
    largest = max(reads, key=lambda r: typical_extent(product(graph.buffers[r.buffer].shape)))
    return is_near(largest, graph.buffers[largest.buffer], last)


def is_near(load: Load, buffer: Buffer, axis: str) -> bool:
    """Whether neighbours of an axis are in one sector of memory, or in the next."""
    stride = flat_stride(load, buffer, axis)
    return stride is not None and 0 < stride * load.dtype.bytes <= SECTOR_BYTES


def leading_spatial(sch: Schedule, block: Block) -> list[str]:
    """The loops of a block's own, from the outermost on, that number independent iterations."""
    rows = {it.binding for it in spatial(block)}
    found = []
    for loop in own_loops(sch, block):
        if Var(loop) not in rows:
            break
        found.append(loop)
    return found


def own_loops(sch: Schedule, block: Block) -> list[str]:
    """The loops in which a block stands alone."""
    around = loops_above(sch.func, block.name)
    others = [
        loops_above(sch.func, b.name) for b in block_graph(sch.func).blocks if b.name != block.name
    ]
    shared = {loop.name for loops in others for loop in loops}
    return [loop.name for loop in around if loop.name not in shared]
