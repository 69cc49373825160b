"""New loops around a block for part of its domain: what moving a block is made of.

block "T" for rows 8 * i.0 - 1 and ten on:

for T.ax0 in serial(10) {
  block "T" [v: S(M) = i.0 * 8 + T.ax0 - 1] where 0 <= ... & i.0 * 8 + T.ax0 - 1 < M
}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tilewright.arith.affine import split_by, to_affine
from tilewright.arith.bounds import NATURAL, Bounds, loop_ranges
from tilewright.arith.expr import TRUE, Expr, Var, as_int, const, maximum, minimum
from tilewright.arith.simplify import prove, prove_less, simplify
from tilewright.arith.walk import conjuncts, free_vars, loads, substitute
from tilewright.core.node import node
from tilewright.ir.loop.access_regions import regions_of
from tilewright.ir.loop.nodes import Block, Buffer, For, Iter, Region, Seq, Stmt
from tilewright.schedule.tree import Spine, loops_of

Extents = Mapping[str, Expr]
ZERO, ONE = const(0), const(1)


@node
class Range:
    """`extent` values from `start` on."""

    start: Expr
    extent: Expr


def axis_names(block: Block) -> tuple[str, ...]:
    """The names of the loops that `loops_over_region` makes."""
    return tuple(f"{block.name}.ax{n}" for n in range(len(block.iters)))


def loops_over_region(block: Block, ranges: Sequence[Range], scope: Extents) -> Stmt:
    """`block` in a loop an iterator over these ranges; instances outside its domain do not run.

    Nor do those that its own predicate excludes within the domain: terms beyond the last one, where
    the loop over terms was split, and each part got an iterator.
    """
    names = axis_names(block)
    inner = {**scope, **{name: r.extent for name, r in zip(names, ranges, strict=True)}}
    predicate: Expr = TRUE
    iters: list[Iter] = []
    for it, name, r in zip(block.iters, names, ranges, strict=True):
        # Written out even where the loop runs once, so that every loop is bound to something.
        at = Var(name) if r.start is ZERO else simplify(r.start + Var(name), inner)
        iters.append(Iter(it.name, it.kind, it.extent, at))
        if not prove(ZERO <= at, inner):
            predicate = predicate & (ZERO <= at)
        if not prove_less(at, it.extent, inner):
            predicate = predicate & (at < it.extent)
    for condition in _excluded(block, {it.name: it.binding for it in iters}):
        if not prove(condition, inner):
            predicate = predicate & condition
    nest: Stmt = replace(block, iters=tuple(iters), predicate=predicate)
    for name, r in reversed(tuple(zip(names, ranges, strict=True))):
        nest = For(name, r.extent, "serial", nest)
    return nest


def _excluded(block: Block, bindings: Mapping[str, Expr]) -> Iterator[Expr]:
    """The conditions of a block on several iterators, where those have other bindings."""
    own = {it.binding.name: bindings[it.name] for it in block.iters if isinstance(it.binding, Var)}
    for condition in conjuncts(block.predicate):
        used = free_vars(condition)
        if len(used) > 1 and used <= own.keys():
            yield substitute(condition, own)


def required_region(
    spines: Iterable[tuple[Spine, Sequence[Region]]],
    depth: int,
    buffers: Mapping[str, Buffer],
    scope: Extents,
) -> list[Range]:
    """The box that covers given regions of blocks while the loops below `depth` run.

    Each spine ends at a block, its regions are of one buffer; `scope` are the loops above `depth`.
    """
    box: list[Range] | None = None
    for spine, regions in spines:
        block = spine[-1]
        assert isinstance(block, Block)
        # A copy of the block with only the reads and writes that are needed here.
        stub: Stmt = Block("", block.iters, tuple(regions), (), Seq(()))
        for loop in reversed(loops_of(spine[depth:])):
            stub = For(loop.name, loop.extent, loop.kind, stub)
        for region in regions_of(stub, buffers)[0]:
            ranges = _ranges(region, buffers[region.buffer], scope)
            if box is not None:
                ranges = [_union(a, b, scope) for a, b in zip(box, ranges, strict=True)]
            box = ranges
    assert box is not None, "some block touches the buffer"
    return [Range(r.start, _bounded(r.extent, scope)) for r in box]


def _ranges(region: Region, buffer: Buffer, scope: Extents) -> list[Range]:
    """A region's dimensions; one that depends on data is taken whole."""
    return [
        Range(ZERO, dim)
        if any(loads(start)) or any(loads(extent))
        else Range(simplify(start, scope), simplify(extent, scope))
        for (start, extent), dim in zip(region.ranges, buffer.shape, strict=True)
    ]


def _union(a: Range, b: Range, scope: Extents) -> Range:
    start = simplify(minimum(a.start, b.start), scope)
    end = simplify(maximum(a.start + a.extent, b.start + b.extent), scope)
    return Range(start, simplify(end - start, scope))


def _bounded(extent: Expr, scope: Extents) -> Expr:
    """A constant not below `extent` where there is one: loops of fixed length are best."""
    if as_int(extent) is None:
        high = Bounds(loop_ranges(scope), NATURAL).of(extent).hi
        return extent if high is None else const(high)
    return extent


def iterator_range(it: Iter, index: Expr, box: Range, scope: Extents) -> Range | None:
    """The values of an iterator for which `index` is in a box; `None` if they cannot be found."""
    split = split_by(to_affine(index), it.name)
    if split is None or split[0].coeffs or split[1].coeffs or split[1].constant:
        return None
    step = split[0].constant
    if step < 1:
        return None
    start = simplify(box.start // step, scope)
    if prove((box.start % step).eq(ZERO), scope):
        return Range(start, simplify((box.extent + (step - 1)) // step, scope))
    return Range(start, simplify((box.extent + (step - 1)) // step + 1, scope))
