"""Nests with no reduction: the innermost axis in vectors, the outermost in parallel."""

from __future__ import annotations

from math import prod

from tilewright.arith.affine import factors, to_affine
from tilewright.arith.expr import Expr, Select, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, loads, subexpressions
from tilewright.ir.loop.annotations import VERSIONED
from tilewright.ir.loop.nodes import Block, Iter
from tilewright.ir.loop.walk import loops as loops_of
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_stride,
    least_extent,
    loop_of,
    op_count,
    reads_of,
    spatial,
    typical_extent,
    value_of,
)
from tilewright.schedule.builtin.cpu.parallelize import is_parallel
from tilewright.schedule.builtin.cpu.phases import last_axis_phases, schedule_phases
from tilewright.schedule.builtin.cpu.transpose import MIN_ROWS, crossing_axis, schedule_transposed
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# Iterations of the parallel loop for each core, for load balance.
CHUNKS_PER_CORE = 16
# Symbolic factors of an extent, of which at least one is assumed not to be small.
MIN_UNKNOWN_FACTORS = 2
# Iterations of short axes that may be unrolled, in all.
MAX_CHOICES = 16
# Vectors in one iteration: independent chains hide latency.
UNROLL = 4
# Vectors whose elements are interleaved by fewer shuffles than transpose them.
MAX_STRANDS = 4
# Elements of a short line that are worth a vector of their own.
MIN_LANES = 4
# How many vectors there may be.
WIDTHS = (1, 2, 3, 4, 6, 8)


def schedule_injective(sch: Schedule, block: Block, target: CpuTarget) -> None:
    """Schedule one nest whose loops all number output elements."""
    axes = spatial(block)
    if not axes:
        return
    loops = [loop_of(it) for it in axes]
    extents = [typical_extent(it.extent) for it in axes]
    lanes = target.lanes(value_of(block).dtype.bits)
    crossing = crossing_axis(block, block_graph(sch.func), target, MIN_ROWS)
    along = _read_along(block, block_graph(sch.func), lanes) if extents[-1] < lanes else None
    if along is not None and extents[-1] <= MAX_STRANDS:
        loops = _interleave(sch, block, along, lanes)
    elif crossing is not None and sch.choose(
        f"{block.name}.blocked_transpose", True, lambda: (False, True)
    ):
        loops = schedule_transposed(sch, block, crossing, target)
    elif (phases := last_axis_phases(block, block_graph(sch.func))) > 1:
        loops = schedule_phases(sch, block, phases, target)
    elif extents[-1] >= lanes:
        factor = lanes * _width(sch, block, axes[-1].extent, lanes)
        loops[-1], inner = sch.split(loops[-1], [None, factor])
        sch.vectorize(inner)
        extents[-1] = -(-extents[-1] // factor)
        _write_out_choices(sch, block, loops, extents, inner)
        loops = _shareable(loops, axes[-1].extent, factor)
    elif along is not None:
        loops = _interleave(sch, block, along, lanes)
    elif len(loops) > 1:
        _short_line(sch, block, loops.pop())
    if is_parallel(sch, block.name, op_count(block)):
        shared, *_ = parallelize_evenly(sch, block.name, loops, target)
        if shared not in loops and as_int(axes[-1].extent) is not None:
            sch.annotate(shared, VERSIONED.key, 1)  # whole vectors need no masks


def _width(sch: Schedule, block: Block, extent: Expr, lanes: int) -> int:
    """Vectors of one iteration, of a number that leaves no rest where one does."""
    vectors = min(UNROLL if _keeps_width(block) else 1, typical_extent(extent) // lanes)
    exact = [n for n in range(2, vectors + 1) if as_int(simplify(extent % (n * lanes))) == 0]
    return vectors_together(sch, block.name, max(exact, default=vectors), extent, lanes)


def vectors_together(sch: Schedule, name: str, default: int, extent: Expr, lanes: int) -> int:
    """How many vectors of an axis the block `name` computes in one iteration."""
    most = typical_extent(extent) // lanes
    return sch.choose(f"{name}.vectors", default, lambda: [n for n in WIDTHS if n <= most])


def _shareable(loops: list[str], extent: Expr, width: int) -> list[str]:
    """The loops that may run in parallel: a short one with a remainder, fused, is all guards."""
    known = as_int(extent)
    ragged = known is not None and known % width != 0 and known < width * CHUNKS_PER_CORE
    return loops[:-1] if ragged and len(loops) > 1 else loops


def _read_along(block: Block, graph: BlockGraph, lanes: int) -> Iter | None:
    """The axis before a last one too short for a vector, if all loads have stride 1 along it."""
    axes = spatial(block)
    if len(axes) < 2 or not as_int(axes[-1].extent) or lanes < 2:
        return None
    along = axes[-2]
    strides = [flat_stride(r, graph.buffers[r.buffer], along.name) for r in reads_of(block)]
    long = typical_extent(along.extent) >= lanes or (as_int(along.extent) or 0) >= MIN_LANES
    return along if long and strides and all(s == 1 for s in strides) else None


def _short_line(sch: Schedule, block: Block, line: str) -> None:
    """Make a last axis too short for a whole vector one of its own length, where it is worth it.

    It is not shared: a division in each iteration costs more.
    """
    last, buffers = spatial(block)[-1], block_graph(sch.func).buffers
    strides = (flat_stride(r, buffers[r.buffer], last.name) for r in reads_of(block))
    if (as_int(last.extent) or 0) >= MIN_LANES and all(s in (0, 1) for s in strides):
        sch.vectorize(line)


def _interleave(sch: Schedule, block: Block, along: Iter, lanes: int) -> list[str]:
    """Load vectors, store interleaved elements; the loops that may run in parallel.

    A line shorter than a vector is one by itself: a masked one would be stored lane by lane, each
    behind a branch.
    """
    *outer, _, last = spatial(block)
    lanes = min(lanes, typical_extent(along.extent))
    part, lane = sch.split(loop_of(along), [None, lanes])
    sch.reorder(part, loop_of(last), lane)
    sch.unroll(loop_of(last))
    sch.vectorize(lane)
    return [*map(loop_of, outer), part]


def _keeps_width(block: Block) -> bool:
    """Whether no operand is wider than the result."""
    value = value_of(block)
    return all(x.dtype.bits <= value.dtype.bits for x in loads(value) if x.dtype.is_float)


def _write_out_choices(
    sch: Schedule, block: Block, loops: list[str], extents: list[int], inner: str
) -> None:
    """Unroll short axes that conditions depend on, innermost: each copy has one branch of them.

    Removes their loops from the lists, which keep those that may run in parallel.
    """
    deciding = {
        name
        for e in subexpressions(value_of(block))
        if isinstance(e, Select)
        for name in free_vars(e.cond)
    }
    chosen, copies = [], 1
    for it in spatial(block)[:-1]:
        extent = as_int(it.extent) or MAX_CHOICES + 1
        if it.name in deciding and copies * extent <= MAX_CHOICES:
            chosen.append(loop_of(it))
            copies *= extent
    if not chosen:
        return
    kept = [(loop, n) for loop, n in zip(loops, extents, strict=True) if loop not in chosen]
    loops[:], extents[:] = [loop for loop, _ in kept], [n for _, n in kept]
    sch.reorder(*loops, *chosen, inner)
    for loop in chosen:
        sch.unroll(loop)


def parallelize_evenly(sch: Schedule, name: str, loops: list[str], target: CpuTarget) -> list[str]:
    """Parallelize the outermost loops of a block, by default as few as give all cores work.

    Returns the loops afterwards. A fused loop costs a division in each iteration, so the innermost
    ones are not fused. A symbolic extent may be 1, as a batch often is; but a product of several
    is taken to be large, and a small remaining loop is then not worth a division.
    """
    extents = {loop.name: loop.extent for loop in loops_of(sch.func.body)}
    enough = target.cores * CHUNKS_PER_CORE
    count, taken, unknown = 1, 0, 0
    while taken < len(loops) and count < enough:
        left = prod(as_int(extents[loop]) or enough for loop in loops[taken:])
        if unknown >= MIN_UNKNOWN_FACTORS and left < enough:
            break
        count *= least_extent(extents[loops[taken]])
        unknown += _unknown_factors(extents[loops[taken]])
        taken += 1
    taken = sch.choose(f"{name}.loops", max(taken, 1), lambda: range(1, len(loops) + 1))
    shared = sch.fuse(*loops[:taken]) if taken > 1 else loops[0]
    sch.parallel(shared)
    return [shared, *loops[taken:]]


def _unknown_factors(extent: Expr) -> int:
    """The fewest symbolic factors of a term of the extent."""
    return min((len(factors(atom)) for atom in to_affine(extent).coeffs), default=0)
