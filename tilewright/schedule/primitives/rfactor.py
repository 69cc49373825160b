"""`rfactor(block, loop)`: split a reduction into partial ones, one for each iteration of a loop.

    for i in serial(M) {                          alloc s.rf: f32[4, M]
      for k.0 in serial(K // 4) {                 for i in serial(M) {
        for k.1 in serial(4) {                      for k.0, k.1 in serial(K // 4, 4) {
          block "s" [vi: S(M) = i,            →       block "s.rf" [vk.1: S(4) = k.1, vi: S(M) = i,
                     vk: R(K) = k.0 * 4 + k.1]                      vk.0: R(K // 4) = k.0]
            init { s[vi] = 0.0 }                        init { s.rf[vk.1, vi] = 0.0 }
            { s[vi] += x[vi, vk] }                      { s.rf[vk.1, vi] += x[vi, vk.0 * 4 + vk.1] }
        }                                           }
      }                                           }
    }                                             for s.final.ax0, s.final.ax1 in serial(M, 4) {
                                                    block "s" [vi: S(M) = s.final.ax0,
                                                               vk.1: R(4) = s.final.ax1]
                                                      init { s[vi] = 0.0 }
                                                      { s[vi] += s.rf[vk.1, vi] }
                                                  }

The loop becomes spatial, so it can be vectorized. The partial results are in `<buffer>.rf`, which
has one more dimension in front. `<block>.rf` keeps the loops; the block itself, just after the
nest, gets new loops `<block>.final.axN` over the partial results. A guarded reduction loop would
leave some partial results uninitialized, so a separate block `<block>.rf.init` initializes them.
With `own_start` a partial result that certainly has a first term is started by it, guarded or not:
sums of floats start with -0.0, which leaves that term as it is.
A second `rfactor` of the same reduction gives `.rf2` and `.final2`.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import TRUE, Binary, Expr, Load, Var, const
from tilewright.arith.simplify import prove
from tilewright.arith.walk import free_vars, substitute
from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Alloc, Block, Buffer, For, Func, Iter, Stmt, Store
from tilewright.ir.loop.walk import blocks, buffers
from tilewright.schedule.analysis.dataflow import only_buffer
from tilewright.schedule.analysis.reduction import (
    Reduction,
    bound_loops,
    check_unmixed,
    reduction_of,
    spatial_nest,
    split_predicate,
)
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.rewrite_accesses import simplify_loads
from tilewright.schedule.tree import (
    Spine,
    block_spine,
    check_block_free,
    check_loop_free,
    extents_of,
    inserted_after,
    inserted_before,
    leaves,
    loop_spine,
    loops_of,
    replaced,
    target_block,
    target_loop,
)


def rfactor(func: Func, block: str, loop: str, own_start: bool = False) -> Func:
    """Reduce into one partial result per iteration of a loop, then over the partial results."""
    spine = block_spine(func, block)
    old = target_block(spine)
    buffer = only_buffer(func, old, "rfactor")
    reduction = reduction_of(func, old, "rfactor")
    axis = target_loop(loop_spine(func, loop))
    nest = _own_nest(func, spine, old, axis)
    known = buffers(func)
    name = rfactor_name(func, block, loop)
    check_block_free(func, name)
    number = name.removeprefix(f"{block}.rf")
    partials = f"{buffer}.rf{number}"
    if partials in known:
        raise refuse(func, "schedule.name-taken", f"there is a buffer {partials} already")
    shape = (axis.extent, *known[buffer].shape)
    known[partials] = Buffer(partials, reduction.target.dtype, shape)
    partial = _Partial(func, old, reduction, axis, nest, known, number, own_start)
    after = replaced(func, spine, partial.block())
    final = _final_nest(func, old, reduction, axis, nest, known, number)
    after = inserted_after(after, block_spine(after, name)[: spine.index(nest[0]) + 1], final)
    if partial.guarded:
        start = loop_spine(after, partial.loops[0].name)
        after = inserted_before(after, start, partial.init_nest())
    return replace(after, body=Alloc(known[partials], after.body))


def rfactor_name(func: Func, block: str, loop: str, own_start: bool = False) -> str:
    """The name of the block that computes the partial results."""
    taken = {b.name for b in blocks(func.body)}
    numbers = ("", *(str(n) for n in range(2, len(taken) + 2)))
    return next(f"{block}.rf{n}" for n in numbers if f"{block}.rf{n}" not in taken)


def _own_nest(func: Func, spine: Spine, block: Block, axis: For) -> tuple[Stmt, ...]:
    """The part of the spine that belongs to the block alone; it must hold all reduction loops."""
    check_unmixed(func, block, "rfactor")
    reduced = bound_loops(block, "R")
    if axis.name not in reduced or axis not in spine:
        message = f'block "{block.name}" does not reduce over loop {axis.name}'
        raise refuse(func, "rfactor.loop", message, axis)
    start = next(
        n
        for n, s in enumerate(spine)
        if isinstance(s, For | Block) and all(leaf is block for leaf in leaves(s))
    )
    shared = [f for f in loops_of(spine[:start]) if f.name in reduced]
    if shared:
        message = f'other blocks stand in loop {shared[0].name}, which "{block.name}" reduces over'
        raise refuse(func, "rfactor.shared", message, shared[0])
    if free_vars(axis.extent) & {f.name for f in loops_of(spine)}:
        message = f"the extent {axis.extent} of loop {axis.name} depends on other loops"
        raise refuse(func, "rfactor.extent", message, axis)
    return spine[start:]


class _Partial:
    """The block that computes the partial results, and their initialization."""

    def __init__(
        self,
        func: Func,
        block: Block,
        reduction: Reduction,
        axis: For,
        nest: tuple[Stmt, ...],
        known: dict[str, Buffer],
        number: str,
        own_start: bool,
    ) -> None:
        self.func = func
        self.name = f"{block.name}.rf{number}"
        self.old = block
        self.nest = nest
        self.known = known
        reduced = bound_loops(block, "R")
        self.loops = [f for f in loops_of(nest) if f.name in reduced]
        spatial, inside = split_predicate(func, block, "rfactor")
        self.predicate = spatial
        others = [f for f in self.loops if f is not axis]
        first = substitute(inside, {f.name: const(0) for f in others})
        starts = own_start and prove(first, extents_of(nest))
        self.guarded = inside is not TRUE and not starts
        self.iters = (
            Iter(f"v{axis.name}", "S", axis.extent, Var(axis.name)),
            *(it for it in block.iters if it.kind == "S"),
            *(Iter(f"v{f.name}", "R", f.extent, Var(f.name)) for f in others),
        )
        indices = (Var(f"v{axis.name}"), *reduction.target.indices)
        element = Load(f"{reduction.target.buffer}.rf{number}", indices, reduction.target.dtype)
        start = reduction.start_of_parts if own_start else reduction.start
        self.start = Store(element.buffer, indices, start)
        term = self._term(reduction)
        combined = Binary(reduction.op, element, term) if others else term
        self.step = Store(element.buffer, indices, combined)
        self.starts = bool(others) and not self.guarded

    def _term(self, reduction: Reduction) -> Expr:
        iterators: dict[str, Expr] = {f.name: Var(f"v{f.name}") for f in self.loops}
        values = {
            it.name: substitute(it.binding, iterators) for it in self.old.iters if it.kind == "R"
        }
        extents = {it.name: it.extent for it in self.iters}
        return simplify_loads(substitute(reduction.term, values), extents)

    def block(self) -> Block:
        """The block; where reduction loops are guarded, it has no init of its own."""
        return make_block(
            self.name,
            self.iters,
            self.step,
            self.start if self.starts else None,
            self.old.predicate,
            annotations=self.old.annotations,
            buffers=self.known,
        )

    def init_nest(self) -> Stmt:
        """Loops that initialize every partial result, guarded or not."""
        name = f"{self.name}.init"
        check_block_free(self.func, name)
        unguarded = replace(self.block(), predicate=self.predicate)
        around = loops_of(self.nest[self.nest.index(self.loops[0]) :])
        spatial = spatial_nest(self.func, unguarded, around, name, "rfactor")
        block = make_block(name, spatial.iters, self.start, None, spatial.predicate)
        return spatial.around(block)


def _final_nest(
    func: Func,
    block: Block,
    reduction: Reduction,
    axis: For,
    nest: tuple[Stmt, ...],
    known: dict[str, Buffer],
    number: str,
) -> Stmt:
    prefix = f"{block.name}.final{number}"
    spatial = spatial_nest(func, block, loops_of(nest), prefix, "rfactor")
    loop = f"{prefix}.ax{len(spatial.loops)}"
    check_loop_free(func, loop)
    partial = f"v{axis.name}"
    target = reduction.target
    element = Load(f"{target.buffer}.rf{number}", (Var(partial), *target.indices), target.dtype)
    final = make_block(
        block.name,
        (*spatial.iters, Iter(partial, "R", axis.extent, Var(loop))),
        Store(target.buffer, target.indices, Binary(reduction.op, target, element)),
        block.init,
        spatial.predicate,
        buffers=known,
    )
    return spatial.around(For(loop, axis.extent, "serial", final))
