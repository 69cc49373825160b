"""`compute_at(block, loop)`: move a producer into a loop of its consumers.

    for i in serial(M) { block "T" ... }            for j.0 in serial(M // 8) {
    for j.0 in serial(M // 8) {                       for T.ax0 in serial(8) {
      for j.1 in serial(8) {                   →        block "T" [v: S(M) = j.0 * 8 + T.ax0] ...
        block "C" ... reads T[w] ...                  }
      }                                               for j.1 in serial(8) { block "C" ... }
    }                                               }

Each iteration computes the bounding box of what the consumers read in it. The block gets a loop
`<block>.axN` for each of its iterators. Elements of the box that are out of bounds, or that no
consumer may need, are guarded.
"""

from __future__ import annotations

from tilewright.arith.simplify import prove
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, Func, Iter
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.analysis import bounds_inference
from tilewright.schedule.analysis.bounds_inference import (
    ONE,
    ZERO,
    Extents,
    Range,
    iterator_range,
    loops_over_region,
    required_region,
)
from tilewright.schedule.analysis.dataflow import (
    allocation,
    check_order,
    only_buffer,
    read,
    readers,
)
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.insertion_point import placed_before
from tilewright.schedule.tree import (
    Spine,
    block_spine,
    check_loop_free,
    extents_of,
    loop_spine,
    loops_of,
    replaced,
    target_block,
    target_loop,
)


def compute_at(func: Func, block: str, loop: str) -> Func:
    """Compute a block inside a loop of its consumers: what they need in one iteration."""
    spine = block_spine(func, block)
    producer = target_block(spine)
    buffer = only_buffer(func, producer, "compute-at")
    allocation(func, buffer, "compute-at", producer)
    at = loop_spine(func, loop)
    consumers = _consumers(func, producer, buffer, at)
    scope = extents_of(at)
    reads = [(c, [r for r in target_block(c).reads if r.buffer == buffer]) for c in consumers]
    box = required_region(reads, len(at), buffers(func), scope)
    around = {s.name for s in loops_of(spine) if s in loops_of(at)}
    ranges = [_range(producer, it, box, scope, around) for it in producer.iters]
    removed = replaced(func, spine, None)
    check_loop_free(removed, *bounds_inference.axis_names(producer))
    moved = loops_over_region(producer, ranges, scope)
    after = placed_before(removed, loop_spine(removed, loop), moved, lambda s: buffer in read(s))
    check_order(func, after, "compute-at")
    return after


def axis_names(func: Func, block: str, loop: str) -> tuple[str, ...]:
    """The names of the loops that the block gets, one for each of its iterators."""
    return bounds_inference.axis_names(target_block(block_spine(func, block)))


def _consumers(func: Func, producer: Block, buffer: str, at: Spine) -> list[Spine]:
    loop = target_loop(at)
    if loop.kind == "vectorize":
        message = f"loop {loop.name} is vectorised: nothing can be computed at it"
        raise refuse(func, "compute-at.vectorized", message, loop)
    found = [c for c in readers(func, buffer) if c[-1] is not producer]
    for c in found:
        leaf = c[-1]
        name = f'"{leaf.name}"' if isinstance(leaf, Block) else "a tile or store"
        start = f'cannot compute "{producer.name}" at loop {loop.name}: {name}'
        if loop not in c[:-1]:
            raise refuse(
                func,
                "compute-at.consumer-outside",
                f"{start} also reads it outside that loop",
                leaf,
                help="choose a loop around all that reads it",
            )
        if not isinstance(leaf, Block):
            raise refuse(func, "compute-at.consumer", f"{start} reads it, not a block", leaf)
    if not found:
        message = f'nothing reads what block "{producer.name}" writes'
        raise refuse(func, "compute-at.no-consumer", message, producer)
    return found


def _range(block: Block, it: Iter, box: list[Range], scope: Extents, around: set[str]) -> Range:
    """The range of an iterator for which the block writes the box.

    One that is no index of what is written, but tells where in loops `around` both the block is,
    stays as it is.
    """
    whole = Range(ZERO, it.extent)
    if it.kind == "R":
        return whole
    indices = [start for start, _ in block.writes[0].ranges]
    for index, part in zip(indices, box, strict=True):
        found = iterator_range(it, index, part, scope)
        if found is not None:
            return whole if prove(it.extent <= found.extent, scope) else found
    outer = free_vars(it.binding)
    return Range(it.binding, ONE) if outer and outer <= around else whole
