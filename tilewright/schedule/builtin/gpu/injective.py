"""Nests without reduction: a thread computes a few neighbouring elements, as a vector if possible.

grid, thread: some elements
  y[4 elements] = f(x[4 elements])
"""

from __future__ import annotations

from tilewright.arith.expr import Load, as_int, product
from tilewright.arith.simplify import prove, simplify
from tilewright.ir.loop.nodes import Block
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_stride,
    loop_of,
    reads_of,
    spatial,
    typical_extent,
    uses,
    value_of,
)
from tilewright.schedule.builtin.gpu.thread_per_element import (
    WIDTHS,
    bind_points,
    choose_threads,
    is_near,
    own_loops,
)
from tilewright.schedule.builtin.gpu.transpose import schedule_transpose, transposed_read
from tilewright.schedule.schedule import Schedule
from tilewright.target.calibration.sm_90a import OCCUPANCY
from tilewright.target.gpu import GpuTarget


def schedule_injective(sch: Schedule, block: Block, target: GpuTarget) -> None:
    """Schedule one nest whose loops are all spatial."""
    axes = spatial(block)
    if not axes:
        return
    graph = block_graph(sch.func)
    transposed = transposed_read(block, graph, target)
    if transposed is not None and own_loops(sch, block) == [loop_of(it) for it in axes]:
        if sch.choose(f"{block.name}.through_shared", True, lambda: (False, True)):
            schedule_transpose(sch, block, transposed)
            return
    loops = [loop_of(it) for it in axes]
    width = _choose_width(sch, block, graph, target)
    if width > 1:
        loops[-1], lane = sch.split(loops[-1], [None, width])
        sch.vectorize(lane)
    threads = choose_threads(sch, block.name, [it.extent for it in axes], target)
    bind_points(sch, loops, threads, _choose_several(sch, block, width, target))


def _choose_several(sch: Schedule, block: Block, width: int, target: GpuTarget) -> int:
    """How many elements or short vectors a thread reads at once: together as much as a vector.

    Only one where neighbours read far from one another: threads side by side share cache lines.
    """
    axes, graph = spatial(block), block_graph(sch.func)
    points = typical_extent(simplify(product(tuple(it.extent for it in axes))))
    along = [r for r in reads_of(block) if uses(r, axes[-1].name)]
    near = all(is_near(r, graph.buffers[r.buffer], axes[-1].name) for r in along)
    several = max(1, target.lanes(value_of(block).dtype.bits) // width) if near else 1
    busy = target.sm_count * OCCUPANCY.injective_threads
    while several > 1 and points // (width * several) < busy:
        several //= 2
    return sch.choose(f"{block.name}.several", several, lambda: WIDTHS)


def _choose_width(sch: Schedule, block: Block, graph: BlockGraph, target: GpuTarget) -> int:
    """The elements of a vector: what a thread reads and writes must be contiguous."""
    axes = spatial(block)
    last, points = axes[-1], typical_extent(simplify(product(tuple(it.extent for it in axes))))
    along = [r for r in reads_of(block) if uses(r, last.name)]
    strides = [flat_stride(r, graph.buffers[r.buffer], last.name) for r in along]
    written = graph.buffers[block.writes[0].buffer]
    asked = f"{block.name}.width"
    if any(s != 1 for s in strides) or not as_int(written.shape[-1]):
        width = _short_row(block, graph, target)
        return sch.choose(asked, width, lambda: sorted({1, width}))
    bits = max(x.dtype.bits for x in (value_of(block), *along))
    most = target.lanes(bits)
    while most > 1 and not prove((last.extent % most).eq(0)):
        most //= 2
    width, busy = most, target.sm_count * OCCUPANCY.injective_threads
    while width > 1 and points // width < busy:
        width //= 2
    return sch.choose(asked, width, lambda: [n for n in WIDTHS if n <= most])


def _short_row(block: Block, graph: BlockGraph, target: GpuTarget) -> int:
    """The length of rows that a thread writes as a vector, where reads are coalesced across rows.

    Elsewhere a thread has one element, and reads of neighbours are not coalesced.
    """
    axes, written = spatial(block), graph.buffers[block.writes[0].buffer]
    length = as_int(axes[-1].extent)
    place = Load(written.name, tuple(start for start, _ in block.writes[0].ranges), written.dtype)
    if len(axes) < 2 or length is None or flat_stride(place, written, axes[-1].name) != 1:
        return 1
    near = [flat_stride(r, graph.buffers[r.buffer], axes[-2].name) for r in reads_of(block)]
    fits = length & (length - 1) == 0 and length <= target.lanes(written.dtype.bits)
    return length if fits and all(stride == 1 for stride in near) else 1
