"""`reverse_compute_at(block, loop)`: move a consumer into a loop of its producer, after it.

    for i.0 in serial(M // 8) {                     for i.0 in serial(M // 8) {
      for k in serial(K) {                            for k in serial(K) {
        for i.1 in serial(8) { block "T" ... }          for i.1 in serial(8) { block "T" ... }
      }                                        →      }
    }                                                 for C.ax0 in serial(8) {
    for i in serial(M) {                                block "C" [v: S(M) = i.0 * 8 + C.ax0] ...
      block "C" ... reads T[v] ...                    }
    }                                               }

In each iteration of the loop the block consumes what its producers finish in it. It gets a loop
`<block>.axN` for each of its iterators. A producer's reduction must be complete within one
iteration, and so must all inputs of the block's own reduction.
"""

from __future__ import annotations

from tilewright.arith.expr import Expr, Var
from tilewright.arith.simplify import prove
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, Func, Iter, Region
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.analysis import bounds_inference
from tilewright.schedule.analysis.bounds_inference import (
    ONE,
    ZERO,
    Extents,
    Range,
    loops_over_region,
    required_region,
)
from tilewright.schedule.analysis.dataflow import check_order, only_buffer, read, writers, written
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.insertion_point import placed_after
from tilewright.schedule.tree import (
    Spine,
    block_spine,
    check_loop_free,
    extents_of,
    leaves,
    loop_spine,
    loops_of,
    replaced,
    target_block,
    target_loop,
)


def reverse_compute_at(func: Func, block: str, loop: str) -> Func:
    """Run a block inside a loop of its producers, for what they finish in one iteration."""
    spine = block_spine(func, block)
    consumer = target_block(spine)
    only_buffer(func, consumer, "reverse-compute-at")
    at = loop_spine(func, loop)
    scope = extents_of(at)
    ranges: dict[str, Range] = {}
    for buffer in _sources(func, consumer, at):
        _constrain(func, consumer, _finished(func, buffer, at, scope), buffer, scope, ranges)
    around = {s.name for s in loops_of(spine) if s in loops_of(at)}
    bound = {it.name: _bound(it, around) for it in consumer.iters}
    final = [
        _whole(func, consumer, it, ranges.get(it.name, bound[it.name]), scope)
        for it in consumer.iters
    ]
    removed = replaced(func, spine, None)
    check_loop_free(removed, *bounds_inference.axis_names(consumer))
    moved = loops_over_region(consumer, final, scope)
    reads = read(consumer)
    after = placed_after(
        removed, loop_spine(removed, loop), moved, lambda s: not reads.isdisjoint(written(s))
    )
    check_order(func, after, "reverse-compute-at")
    return after


def axis_names(func: Func, block: str, loop: str) -> tuple[str, ...]:
    """The names of the loops that the block gets, one for each of its iterators."""
    return bounds_inference.axis_names(target_block(block_spine(func, block)))


def _sources(func: Func, consumer: Block, at: Spine) -> list[str]:
    """The buffers that the block reads and that are written inside the loop."""
    loop = target_loop(at)
    inside: set[str] = set()
    for leaf in leaves(loop):
        if leaf is not consumer:
            inside |= written(leaf)
    found = sorted(inside & read(consumer))
    if not found:
        message = f'nothing in loop {loop.name} writes what block "{consumer.name}" reads'
        raise refuse(func, "reverse-compute-at.no-producer", message, loop)
    return found


def _finished(func: Func, buffer: str, at: Spine, scope: Extents) -> list[Range]:
    """The box of a buffer that is complete when one iteration of the loop ends."""
    loop = target_loop(at)
    found: list[tuple[Spine, list[Region]]] = []
    for spine in writers(func, buffer):
        leaf = spine[-1]
        if loop not in spine or not isinstance(leaf, Block):
            message = f"{buffer!r} is also written outside loop {loop.name}, or not by a block"
            raise refuse(func, "reverse-compute-at.writers", message, leaf)
        outer = {s.name for s in loops_of(at)}
        for it in leaf.iters:
            if it.kind == "R" and free_vars(it.binding) & outer:
                message = f'block "{leaf.name}" is not finished in one iteration of {loop.name}'
                help = f"choose a loop outside {min(free_vars(it.binding) & outer)}"
                raise refuse(func, "reverse-compute-at.unfinished", message, leaf, help=help)
        found.append((spine, [r for r in leaf.writes if r.buffer == buffer]))
    return required_region(found, len(at), buffers(func), scope)


def _constrain(
    func: Func,
    consumer: Block,
    box: list[Range],
    buffer: str,
    scope: Extents,
    ranges: dict[str, Range],
) -> None:
    """Narrow the iterators to instances that read from the box only."""
    shape = buffers(func)[buffer].shape
    for region in consumer.reads:
        if region.buffer != buffer:
            continue
        for (index, _), part, dim in zip(region.ranges, box, shape, strict=True):
            if _is_all(part, dim, scope):
                continue
            it = next((it for it in consumer.iters if index is Var(it.name)), None)
            if it is None or ranges.get(it.name, part) != part:
                message = f'block "{consumer.name}" reads {buffer!r} at {index}'
                help = "it must read all that is written in an iteration, element by element"
                raise refuse(
                    func, "reverse-compute-at.index", message, consumer, focus=str(index), help=help
                )
            ranges[it.name] = part


def _bound(it: Iter, around: set[str]) -> Range | None:
    """The value of an iterator that depends only on the loops around both blocks."""
    outer = free_vars(it.binding)
    return Range(it.binding, ONE) if it.kind == "S" and outer and outer <= around else None


def _is_all(part: Range, dim: Expr, scope: Extents) -> bool:
    return part.start is ZERO and prove(dim <= part.extent, scope)


def _whole(func: Func, block: Block, it: Iter, found: Range | None, scope: Extents) -> Range:
    whole = Range(ZERO, it.extent)
    if found is None or (found.start is ZERO and prove(it.extent <= found.extent, scope)):
        return whole
    if it.kind == "R":
        message = f'block "{block.name}" reduces over {it.name}, of which only a part is there'
        raise refuse(func, "reverse-compute-at.partial", message, block, focus=it.name)
    return found
