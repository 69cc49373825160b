"""`rfactor(block, loop)`: a reduction is cut into partial ones, side by side along one of its loops.

    for i in serial(M) {                          alloc s.rf: f32[4, M]
      for k.0 in serial(K // 4) {                 for i in serial(M) {
        for k.1 in serial(4) {                      for k.0, k.1 in serial(K // 4, 4) {
          block "s" [vi: S(M) = i,            →       block "s.rf" [vk.1: S(4) = k.1, vi: S(M) = i,
                     vk: R(K) = k.0 * 4 + k.1]                      vk.0: R(K // 4) = k.0]
            init { s[vi] = 0.0 }                        init { s.rf[vk.1, vi] = 0.0 }
            { s[vi] += x[vi, vk] }                      { s.rf[vk.1, vi] += x[vi, vk.0 * 4 + vk.1] }
        }                                           }
      }                                           }
    }                                             for s.ax0, s.ax1 in serial(M, 4) {
                                                    block "s" [vi: S(M) = s.ax0, vk.1: R(4) = s.ax1]
                                                      init { s[vi] = 0.0 }
                                                      { s[vi] += s.rf[vk.1, vi] }
                                                  }

The loop becomes spatial, so it can be vectorised. The partial results live in `<buffer>.rf`, which
has one more dimension in front; `<block>.rf` keeps the loops, the block itself gets new ones
`<block>.axN` over what is left, just after the nest. A guard on a reduction loop moves into the
value, so that every partial result is started.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import TRUE, Binary, Expr, Load, Var, select
from tilewright.arith.walk import free_vars, substitute
from tilewright.ir.loop.nodes import Alloc, Block, Buffer, For, Func, Iter, Stmt, Store
from tilewright.ir.loop.regions import make_block
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.dataflow import only_buffer
from tilewright.schedule.failure import refuse
from tilewright.schedule.primitives.inline import masked, tidy_loads
from tilewright.schedule.reduction import (
    Reduction,
    bound_loops,
    check_unmixed,
    reduction_of,
    spatial_nest,
    split_predicate,
)
from tilewright.schedule.tree import (
    Spine,
    block_spine,
    check_block_free,
    check_loop_free,
    inserted_after,
    leaves,
    loop_spine,
    loops_of,
    replaced,
    target_block,
    target_loop,
)


def rfactor(func: Func, block: str, loop: str) -> Func:
    """Reduce into as many partial results as a reduction loop has iterations, then over those."""
    spine = block_spine(func, block)
    old = target_block(spine)
    buffer = only_buffer(func, old, "rfactor")
    reduction = reduction_of(func, old, "rfactor")
    axis = target_loop(loop_spine(func, loop))
    nest = _own_nest(func, spine, old, axis)
    known = buffers(func)
    name = rfactor_name(func, block, loop)
    check_block_free(func, name)
    if f"{buffer}.rf" in known:
        raise refuse(func, "schedule.name-taken", f"there is a buffer {buffer}.rf already")
    shape = (axis.extent, *known[buffer].shape)
    partial = Buffer(f"{buffer}.rf", reduction.target.dtype, shape)
    known[partial.name] = partial
    after = replaced(func, spine, _partial_block(func, old, reduction, axis, nest, known))
    final = _final_nest(func, old, reduction, axis, nest, known)
    after = inserted_after(after, block_spine(after, name)[: spine.index(nest[0]) + 1], final)
    return replace(after, body=Alloc(partial, after.body))


def rfactor_name(func: Func, block: str, loop: str) -> str:
    """The name of the block that computes the partial results."""
    return f"{block}.rf"


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


def _partial_block(
    func: Func,
    block: Block,
    reduction: Reduction,
    axis: For,
    nest: tuple[Stmt, ...],
    known: dict[str, Buffer],
) -> Block:
    reduced = bound_loops(block, "R")
    loops = [f for f in loops_of(nest) if f.name in reduced]
    iterators: dict[str, Expr] = {f.name: Var(f"v{f.name}") for f in loops}
    values = {it.name: substitute(it.binding, iterators) for it in block.iters if it.kind == "R"}
    guard, inside = split_predicate(func, block, "rfactor")
    term = substitute(reduction.term, values)
    if inside is not TRUE:
        inside = substitute(inside, iterators)
        term = select(inside, masked(term, inside), reduction.start)
    others = [f for f in loops if f is not axis]
    iters = (
        Iter(f"v{axis.name}", "S", axis.extent, Var(axis.name)),
        *(it for it in block.iters if it.kind == "S"),
        *(Iter(f"v{f.name}", "R", f.extent, Var(f.name)) for f in others),
    )
    term = tidy_loads(term, {it.name: it.extent for it in iters})
    indices = (Var(f"v{axis.name}"), *reduction.target.indices)
    name = f"{reduction.target.buffer}.rf"
    element = Load(name, indices, reduction.target.dtype)
    value = Binary(reduction.op, element, term) if others else term
    return make_block(
        f"{block.name}.rf",
        iters,
        Store(name, indices, value),
        Store(name, indices, reduction.start) if others else None,
        guard,
        annotations=block.annotations,
        buffers=known,
    )


def _final_nest(
    func: Func,
    block: Block,
    reduction: Reduction,
    axis: For,
    nest: tuple[Stmt, ...],
    known: dict[str, Buffer],
) -> Stmt:
    spatial = spatial_nest(func, block, loops_of(nest), block.name, "rfactor")
    loop = f"{block.name}.ax{len(spatial.loops)}"
    check_loop_free(func, loop)
    partial = f"v{axis.name}"
    target = reduction.target
    element = Load(f"{target.buffer}.rf", (Var(partial), *target.indices), target.dtype)
    final = make_block(
        block.name,
        (*spatial.iters, Iter(partial, "R", axis.extent, Var(loop))),
        Store(target.buffer, target.indices, Binary(reduction.op, target, element)),
        block.init,
        spatial.predicate,
        buffers=known,
    )
    return spatial.around(For(loop, axis.extent, "serial", final))
