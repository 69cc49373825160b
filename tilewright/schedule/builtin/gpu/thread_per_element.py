"""One thread for each element of the result: correct for every nest.

grid, thread: element
  s = 0
  for k: s += x[element, k]                  a reduction is one thread's, in a register
  y[element] = f(s)

Where neighbouring elements read neighbouring elements, and there are enough of them, a thread has
several, and reads 16 bytes at a time.
"""

from __future__ import annotations

from collections.abc import Iterable

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
from tilewright.target.gpu import SECTOR_BYTES, VECTOR_BYTES, GpuTarget

# Threads of a block by default.
THREADS = 256
# The neighbours that a thread may compute.
WIDTHS = (1, 2, 4, 8, 16)
# Fewer partials than this are added in an unrolled loop.
UNROLL_PARTS = 64
# Reductions up to this length take little time, so that fewer threads are enough.
SHORT_REDUCTION = 64


def bind_threads(sch: Schedule, loops: Iterable[str]) -> None:
    """Bind each of some loops to threads."""
    for loop in loops:
        sch.bind(loop, "thread")


def bind_points(sch: Schedule, loops: list[str], threads: int = THREADS, several: int = 1) -> str:
    """Distribute the iterations of nested loops over threads; gives the thread loop.

    A thread may have `several`, as far from one another as there are threads.
    """
    point = sch.fuse(*loops) if len(loops) > 1 else loops[0]
    if as_int(find_loop(sch.func, point).extent) == 1:
        threads = 1  # more would all have the only element
    if several > 1:
        block, part, thread = sch.split(point, [None, several, threads])
        sch.reorder(thread, part)
        sch.unroll(part)
    else:
        block, thread = sch.split(point, [None, threads])
    sch.bind(block, "grid")
    sch.bind(thread, "thread")
    return str(thread)


def threads_for(extents: list[Expr], target: GpuTarget) -> int:
    """Threads of a block for so many elements: full warps, no more than there are elements."""
    points = typical_extent(simplify(product(tuple(extents))))
    return max(target.warp_size, min(THREADS, 1 << (points - 1).bit_length()))


def choose_threads(sch: Schedule, name: str, extents: list[Expr], target: GpuTarget) -> int:
    """Threads of a block for so many elements: by default `threads_for`."""
    return sch.choose(
        f"{name}.threads", threads_for(extents, target), lambda: thread_counts(target)
    )


def thread_counts(target: GpuTarget) -> list[int]:
    """The threads that a block may have: full warps, powers of two."""
    counts = [target.warp_size]
    while 2 * counts[-1] <= target.threads_per_block:
        counts.append(2 * counts[-1])
    return counts


def divisors(number: int) -> list[int]:
    """The numbers that divide one, in order."""
    return [n for n in range(1, number + 1) if number % n == 0]


def schedule_points(sch: Schedule, block: Block, target: GpuTarget) -> None:
    """Schedule one nest; its spatial loops must be the outer ones, others run in each thread."""
    loops = leading_spatial(sch, block)
    if not loops:
        return
    extents = [find_loop(sch.func, loop).extent for loop in loops]
    threads = choose_threads(sch, block.name, extents, target)
    if not (is_simple(block) and reductions(block)):
        bind_points(sch, loops, threads)
        return
    name = sch.cache_write(block.name, "local")
    copy = block_graph(sch.func).block(name)
    thread = bind_points(sch, [loop_of(it) for it in copy.iters], threads)
    sum_at(sch, block.name, thread)


def schedule_sum(sch: Schedule, name: str, target: GpuTarget, parts: bool = False) -> None:
    """Schedule a reduction and its epilogue, element by element.

    A few partials (`parts`) are all read before they are added.
    """
    graph = block_graph(sch.func)
    last = graph.blocks[-1]
    loops = [loop_of(it) for it in spatial(last)]
    threads = choose_threads(sch, name, [it.extent for it in spatial(last)], target)
    width = _choose_width(sch, graph, name, target)
    if width > 1:
        loops[-1], lane = sch.split(loops[-1], [None, width])
        sch.vectorize(lane)
    sum_at(sch, name, bind_points(sch, loops, threads), width)
    for it in reductions(block_graph(sch.func).block(name)):
        if parts and (as_int(it.extent) or UNROLL_PARTS) < UNROLL_PARTS:
            sch.unroll(loop_of(it))


def sum_at(sch: Schedule, name: str, thread: str, width: int = 1) -> None:
    """Compute a reduction in a thread that needs one element of it, or some neighbours."""
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


def _choose_width(sch: Schedule, graph: BlockGraph, name: str, target: GpuTarget) -> int:
    """How many neighbours a thread computes: 16 bytes of them, if all SMs stay busy."""
    most = _widest(graph, name)
    axes = spatial(graph.block(name))
    points = typical_extent(simplify(product(tuple(it.extent for it in axes))))
    width = most if most > 1 and has_neighbours(graph.block(name), graph, target) else 1
    while width > 1 and points < width * target.sm_count * THREADS:
        width //= 2
    return sch.choose(f"{name}.width", width, lambda: [n for n in WIDTHS if n <= most])


def _widest(graph: BlockGraph, name: str) -> int:
    """How many neighbours a thread can read as one vector: a power of two."""
    block, last = graph.block(name), graph.blocks[-1]
    axes = spatial(block)
    size = as_int(axes[-1].extent)
    same = [str(it.extent) for it in axes] == [str(it.extent) for it in spatial(last)]
    if size is None or not same:
        return 1
    for b in (block, last):
        axis = spatial(b)[-1].name
        near = (flat_stride(r, graph.buffers[r.buffer], axis) for r in reads_of(b) if uses(r, axis))
        if any(stride != 1 for stride in near):
            return 1
    width = VECTOR_BYTES // max((r.dtype.bytes for r in reads_of(block)), default=VECTOR_BYTES)
    while width > 1 and size % width:
        width //= 2
    return width


def has_neighbours(block: Block, graph: BlockGraph, target: GpuTarget) -> bool:
    """Whether all SMs are busy, and accesses of the largest operand are coalesced."""
    axes = spatial(block)
    if not axes:
        return False
    points = typical_extent(simplify(product(tuple(it.extent for it in axes))))
    terms = typical_extent(simplify(product(tuple(it.extent for it in reductions(block)))))
    last = axes[-1].name
    reads = [r for r in reads_of(block) if uses(r, last)]
    threads = target.warp_size if terms <= SHORT_REDUCTION else THREADS
    if points < target.sm_count * threads or not reads:
        return False
    largest = max(reads, key=lambda r: typical_extent(product(graph.buffers[r.buffer].shape)))
    return is_near(largest, graph.buffers[largest.buffer], last)


def is_near(load: Load, buffer: Buffer, axis: str) -> bool:
    """Whether neighbours along an axis are in one sector of memory, or in the next."""
    stride = flat_stride(load, buffer, axis)
    return stride is not None and 0 < stride * load.dtype.bytes <= SECTOR_BYTES


def leading_spatial(sch: Schedule, block: Block) -> list[str]:
    """The outermost loops of a block alone that are spatial."""
    rows = {it.binding for it in spatial(block)}
    found = []
    for loop in own_loops(sch, block):
        if Var(loop) not in rows:
            break
        found.append(loop)
    return found


def own_loops(sch: Schedule, block: Block) -> list[str]:
    """The loops that contain no other block."""
    around = loops_above(sch.func, block.name)
    others = [
        loops_above(sch.func, b.name) for b in block_graph(sch.func).blocks if b.name != block.name
    ]
    shared = {loop.name for loops in others for loop in loops}
    return [loop.name for loop in around if loop.name not in shared]
