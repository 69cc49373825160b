"""`blockize(loop)`: make the body of a loop the body of a block for a whole tile.

    for i.0 in serial(M // 8) {            for i.0 in serial(M // 8) {
      for i.1 in serial(8) {                 block "C.tile" [vi.o: S(M // 8) = i.0]
        block "C" [vi: S(M)                      reads A[vi.o * 8 : 8] writes C[vi.o * 8 : 8] {
            = i.0 * 8 + i.1] ...       →         for i.1 in serial(8) {
      }                                            block "C" [vi: S(M) = vi.o * 8 + i.1] ...
    }                                            }
                                               }
                                           }

The new block is called `<block>.tile`, its iterators `<iterator>.o`. It takes over the
initialization of a reduction, as a block `<block>.init` in loops `<block>.init.axN`. Each tile must
be full: split by divisors, or `pad` first.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.affine import Affine, from_affine, to_affine
from tilewright.arith.bounds import lower, upper
from tilewright.arith.expr import TRUE, Expr, Var, as_int, ceildiv, const
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Block, Func, Iter, Stmt
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.analysis.reduction import check_once, spatial_nest
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import (
    Extents,
    Spine,
    check_block_free,
    extents_of,
    leaf_spines,
    loop_spine,
    loops_of,
    replaced,
    target_block,
    target_loop,
)


def blockize(func: Func, loop: str) -> Func:
    """Make a block of a loop that holds one block."""
    at = loop_spine(func, loop)
    if any(isinstance(s, Block) for s in at):
        raise refuse(func, "schedule.nested", f"loop {loop} is inside a block already", at[-1])
    spine = _only_block(func, at)
    old = target_block(spine)
    name = blockize_name(func, loop)
    check_block_free(func, name)
    nest = spine[len(at) - 1 :]
    inside = extents_of(loops_of(nest))
    if free_vars(old.predicate) & set(inside):
        message = f'block "{old.name}" is guarded inside loop {loop}, so tiles are not whole'
        raise refuse(func, "blockize.guarded", message, old, help="split by divisors, or pad first")
    pairs = [_Split(func, old, it, inside, extents_of(at[:-1])).iterators() for it in old.iters]
    outer = tuple(first for first, _ in pairs if first is not None)
    inner = replace(old, iters=tuple(second for _, second in pairs), predicate=TRUE)
    known = buffers(func)
    init = _init(func, inner, nest)
    if init is not None:
        inner = make_block(
            old.name, inner.iters, old.body, annotations=old.annotations, buffers=known
        )
    body = replaced(replace(func, body=at[-1]), nest, inner).body
    return replaced(func, at, make_block(name, outer, body, init, old.predicate, buffers=known))


def blockize_name(func: Func, loop: str) -> str:
    """The name of the new block."""
    return f"{target_block(_only_block(func, loop_spine(func, loop))).name}.tile"


def _only_block(func: Func, at: Spine) -> Spine:
    spines = list(leaf_spines(at[-1], at[:-1]))
    if len(spines) != 1 or not isinstance(spines[0][-1], Block):
        message = f"loop {target_loop(at).name} does not hold one block and nothing else"
        raise refuse(func, "blockize.blocks", message, at[-1])
    return spines[0]


def _init(func: Func, block: Block, nest: Spine) -> Stmt | None:
    """The initialization of all elements of a tile."""
    if block.init is None:
        return None
    check_once(func, block, loops_of(nest), "blockize", own=True)
    init_name = f"{block.name}.init"
    check_block_free(func, init_name)
    spatial = spatial_nest(func, block, loops_of(nest), init_name, "blockize")
    return spatial.around(make_block(init_name, spatial.iters, block.init, buffers=buffers(func)))


class _Split:
    """An iterator's binding in two: `number of the tile * size of the tile + place in it`."""

    def __init__(self, func: Func, block: Block, it: Iter, inside: Extents, scope: Extents) -> None:
        self.func = func
        self.block = block
        self.it = it
        self.scope = scope
        self.inside = inside
        form = to_affine(it.binding)
        place = {a: c for a, c in form.coeffs.items() if free_vars(a) & set(inside)}
        self.place = from_affine(Affine(place, 0))
        rest = {a: c for a, c in form.coeffs.items() if a not in place}
        self.start = Affine(rest, form.constant)
        if any(not free_vars(a) <= set(inside) for a in place):
            raise self.refusal()

    def iterators(self) -> tuple[Iter | None, Iter]:
        """The new block's iterator, if it needs one, and the old one bound to it."""
        it = self.it
        if not self.start.coeffs and not self.start.constant:
            return None, replace(it, binding=self.place)
        size = self._size()
        number = self._number(size)
        extent = simplify(ceildiv(it.extent, size))
        outer = Iter(f"{it.name}.o", it.kind, extent, number)
        return outer, replace(it, binding=simplify(Var(outer.name) * size + self.place))

    def _size(self) -> Expr:
        last, first = upper(self.place, self.inside), lower(self.place, self.inside)
        if last is None or first is None or as_int(first) != 0:
            raise self.refusal()
        return simplify(last + 1)

    def _number(self, size: Expr) -> Expr:
        start = from_affine(self.start)
        if size is not const(1) and not prove((start % size).eq(0), self.scope):
            raise self.refusal()
        return simplify(start // size, self.scope)

    def refusal(self) -> Exception:
        """The error for a binding that is not a sum of an outer and an inner part."""
        message = f"{self.it.name} = {self.it.binding} is not a tile's number and a place in it"
        return refuse(self.func, "blockize.binding", message, self.block, focus=self.it.name)
