"""`decompose_reduction(block, loop)`: move the initialization of a reduction to just before a loop.

    for i in serial(M) {                          for i in serial(M) {
      for k in serial(K) {                          block "C.init" [vi: S(M) = i] { C[vi] = 0.0 }
        block "C" ... init { C[vi] = 0.0 }    →     for k in serial(K) {
          { C[vi] += A[vi, vk] }                      block "C" ... { C[vi] += A[vi, vk] }
      }                                             }
    }                                             }

The loop must enclose all reduction loops of the block. Spatial loops inside it are repeated for the
new block, with their kinds, as `<block>.init.ax0`, `<block>.init.ax1`, ...
"""

from __future__ import annotations

from tilewright.ir.loop.access_regions import make_block
from tilewright.ir.loop.nodes import Func
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.analysis.reduction import bound_loops, check_once, spatial_nest
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import (
    block_spine,
    check_block_free,
    inserted_before,
    leaves,
    loop_spine,
    loops_of,
    replaced,
    target_block,
    target_loop,
)


def decompose_reduction(func: Func, block: str, loop: str) -> Func:
    """Initialize a reduction in a separate block, just before a loop around the reduction."""
    spine = block_spine(func, block)
    old = target_block(spine)
    at = target_loop(loop_spine(func, loop))
    if old.init is None:
        message = f'block "{block}" has nothing that starts it'
        raise refuse(func, "decompose-reduction.no-init", message, old)
    if at not in spine:
        message = f'loop {loop} is not around block "{block}"'
        raise refuse(func, "decompose-reduction.loop", message, at)
    depth = spine.index(at)
    outside = [f for f in loops_of(spine[:depth]) if f.name in bound_loops(old, "R")]
    if outside:
        message = f'block "{block}" also reduces over loop {outside[0].name}, outside loop {loop}'
        help = f'decompose_reduction("{block}", "{outside[0].name}")'
        raise refuse(func, "decompose-reduction.outside", message, outside[0], help=help)
    own = all(leaf is old for leaf in leaves(at))
    check_once(func, old, loops_of(spine[depth:]), "decompose-reduction", own)
    name = init_name(func, block, loop)
    check_block_free(func, name)
    known = buffers(func)
    nest = spatial_nest(func, old, loops_of(spine[depth:]), name, "decompose-reduction")
    init = make_block(name, nest.iters, old.init, None, nest.predicate, buffers=known)
    update = make_block(
        block, old.iters, old.body, None, old.predicate, annotations=old.annotations, buffers=known
    )
    after = replaced(func, spine, update)
    return inserted_before(after, loop_spine(after, loop), nest.around(init))


def init_name(func: Func, block: str, loop: str) -> str:
    """The name of the new block."""
    return f"{block}.init"
