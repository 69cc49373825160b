"""Row-wise kernels: softmax, norms, reductions along the last axis.

All blocks run row after row; a row stays in L1 from the first block to the last. A reduction along
a row has one partial result for each SIMD lane; they are combined at the end of the row.

    parallel row
      peak.rf[lane] = max over the row in steps of a vector;  peak = max over lanes
      e[j] = exp(x[j] - peak)
      ...
"""

from __future__ import annotations

from collections.abc import Set
from math import prod

from tilewright.arith.expr import Expr, Var, as_int
from tilewright.ir.loop.nodes import Block, Store
from tilewright.schedule.analysis.blocks import (
    BlockGraph,
    block_graph,
    flat_stride,
    is_simple,
    loop_of,
    op_count,
    reads_of,
    reductions,
    spatial,
    typical_extent,
    value_of,
)
from tilewright.schedule.builtin.cpu.injective import UNROLL, vectors_together
from tilewright.schedule.builtin.cpu.parallelize import is_parallel
from tilewright.schedule.builtin.cpu.simd_reduction import reduce_in_lanes
from tilewright.schedule.schedule import Schedule
from tilewright.target.cpu import CpuTarget

# So few elements of a row are reduced one after the other.
MAX_SCALAR_ELEMENTS = 4


def row_axes(graph: BlockGraph) -> int | None:
    """How many leading axes number rows; `None` if the blocks do not share rows.

    Every reduction must produce one value a row, reading along its last reduction axis, and every
    other block must have the row axes in front and read what other blocks give for its own row:
    other axes may happen to be as long.
    """
    sums = [b for b in graph.blocks if reductions(b)]
    if not sums or not all(is_simple(b) for b in graph.blocks):
        return None
    rows = [it.extent for it in spatial(sums[0])]
    for b in graph.blocks:
        extents = [it.extent for it in spatial(b)]
        if reductions(b) and extents != rows:
            return None
        if extents[: len(rows)] != rows:
            return None
    made = {r.buffer for b in graph.blocks for r in b.writes}
    if not all(_reads_its_row(b, len(rows), made) for b in graph.blocks):
        return None
    return len(rows) if all(is_along_row(b, graph) for b in sums) else None


def _reads_its_row(block: Block, rows: int, made: Set[str]) -> bool:
    own = tuple(Var(it.name) for it in spatial(block)[:rows])
    return all(r.indices[:rows] == own for r in reads_of(block) if r.buffer in made)


def is_along_row(block: Block, graph: BlockGraph) -> bool:
    """Whether a reduction reads neighbouring elements one after another."""
    axis = reductions(block)[-1].name
    strides = [flat_stride(r, graph.buffers[r.buffer], axis) for r in reads_of(block)]
    return any(s == 1 for s in strides)


def schedule_rowwise(sch: Schedule, graph: BlockGraph, rows: int, target: CpuTarget) -> None:
    """Schedule all blocks row by row."""
    if reductions(graph.blocks[-1]):
        sch.cache_write(graph.blocks[-1].name, "local")  # partial results stay within the row
        graph = block_graph(sch.func)
    last = graph.blocks[-1]
    total = sum(op_count(b) for b in graph.blocks)
    loops = [loop_of(it) for it in spatial(last)[:rows]]
    if loops:
        row = sch.fuse(*loops) if rows > 1 else loops[0]
        for b in reversed(graph.blocks[:-1]):
            sch.compute_at(b.name, row)
        if is_parallel(sch, last.name, total):
            sch.parallel(row)
    for b in graph.blocks:
        _vectorize(sch, b, rows, target)
    if loops:
        _write_in_place(sch, graph, rows, target)


def _vectorize(sch: Schedule, before: Block, rows: int, target: CpuTarget) -> None:
    """Vectorize the last axis of one block."""
    lanes = target.lanes(value_of(before).dtype.bits)
    axes = reductions(before) or spatial(before)[rows:]
    if not axes:
        return
    factor = _factor(sch, before.name, axes[-1].extent, lanes)
    if reductions(before):
        reduce_in_lanes(sch, before.name, axes[-1].name, factor, lanes)
    elif factor:
        block = block_graph(sch.func).block(before.name)
        _, inner = sch.split(_loop_over(block, axes[-1].name), [None, factor])
        sch.vectorize(inner)


def _write_in_place(sch: Schedule, graph: BlockGraph, rows: int, target: CpuTarget) -> None:
    """Keep a row's intermediate result where the last block writes, unless it fits registers.

    Lines of the output are then fetched while the intermediate result is computed, not by a loop
    that does little more than store.
    """
    *before, last = graph.blocks
    store = last.body
    assert isinstance(store, Store)
    output = graph.buffers[store.buffer]
    size = prod(typical_extent(it.extent) for it in spatial(last)[rows:])
    if size <= UNROLL * target.lanes(output.dtype.bits):
        return
    parameters = {b.name for b in sch.func.params}
    made = (r.buffer for b in before for r in b.writes)
    for buffer in (graph.buffers[name] for name in made if name not in parameters):
        indices = {r.indices for r in reads_of(last) if r.buffer == buffer.name}
        is_like = (buffer.dtype, buffer.shape) == (output.dtype, output.shape)
        if is_like and indices == {store.indices}:
            sch.reuse_buffer(buffer.name, last.name)
            return


def _factor(sch: Schedule, name: str, extent: Expr, lanes: int) -> int:
    """Elements of a row in one iteration: whole vectors, or all of a short row; 0 for a few."""
    typical = typical_extent(extent)
    if typical >= lanes:
        vectors = min(UNROLL, typical // lanes)
        return lanes * vectors_together(sch, name, vectors, extent, lanes)
    few = as_int(extent) is None or typical <= MAX_SCALAR_ELEMENTS
    return 0 if few else 1 << (typical - 1).bit_length()


def _loop_over(block: Block, axis: str) -> str:
    """The loop that an axis runs over, inside the row loop."""
    return loop_of(next(it for it in block.iters if it.name == axis))
