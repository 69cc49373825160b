"""When the iterations of a loop may run otherwise than one after another.

Parallel and vectorised iterations run at once, so every block beneath must write something else in
each: the loop must be bound to spatial iterators, and to no reduction. A block that ignores the
loop may run in each iteration if what it writes is read under the loop only, and is not a sum.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.expr import as_int
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import Block, For, Func
from tilewright.ir.loop.walk import touched_buffers
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import Spine, leaves, replaced, target_loop


def with_kind(func: Func, spine: Spine, kind: str) -> Func:
    """The function with the loop at the end of `spine` of another kind."""
    return replaced(func, spine, replace(target_loop(spine), kind=kind))


def check_constant(func: Func, spine: Spine, kind: str) -> None:
    """Refuse a loop whose extent is not known."""
    loop = target_loop(spine)
    if as_int(loop.extent) is None:
        message = f"cannot {kind} loop {loop.name}: its extent {loop.extent} is not constant"
        help = f'split("{loop.name}", [None, 4]) first'
        raise refuse(func, f"{kind}.extent", message, loop, help=help)


def check_independent(func: Func, spine: Spine, kind: str) -> None:
    """Refuse a loop whose iterations cannot run at once."""
    loop = target_loop(spine)
    if as_int(loop.extent) == 1:
        return
    for leaf in leaves(loop.body):
        if isinstance(leaf, Block):
            _check_block(func, spine, leaf, kind)


def _check_block(func: Func, spine: Spine, block: Block, kind: str) -> None:
    loop = target_loop(spine)
    spatial = any(loop.name in free_vars(it.binding) for it in block.iters if it.kind == "S")
    summed = [it for it in block.iters if it.kind == "R" and loop.name in free_vars(it.binding)]
    if summed:
        message = f'cannot {kind} loop {loop.name}: block "{block.name}" reduces over it'
        raise refuse(
            func,
            f"{kind}.reduction",
            message,
            block,
            focus=summed[0].name,
            help=f'rfactor("{block.name}", "{loop.name}") makes it spatial',
        )
    if spatial:
        return
    reduces = any(it.kind == "R" for it in block.iters)
    if reduces or _shared(func, loop, block):
        message = f'cannot {kind} loop {loop.name}: each iteration runs all of block "{block.name}"'
        raise refuse(func, f"{kind}.repeated", message, block)


def _shared(func: Func, loop: For, block: Block) -> bool:
    """Whether something that the block writes is an output or touched outside the loop."""
    inside = {id(leaf) for leaf in leaves(loop)}
    outside = set(func.outputs)
    for leaf in leaves(func.body):
        if id(leaf) not in inside:
            outside.update(*touched_buffers(leaf))
    return any(r.buffer in outside for r in block.writes)
