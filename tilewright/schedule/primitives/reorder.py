"""`reorder(l1, l2, ...)`: permute loops of one perfect nest.

    for i in serial(M) {                for k in serial(K) {
      for j in serial(N) {                for j in serial(N) {
        for k in serial(K) { A }    →       for i in serial(M) { A }      reorder("k", "i")
      }                                   }
    }                                   }

The named loops are put in the given order into the positions they have; other loops stay.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import For, Func, Stmt
from tilewright.ir.loop.walk import blocks
from tilewright.schedule.analysis.reduction import bound_loops, check_once
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import Spine, loop_spine, replaced, target_loop


def reorder(func: Func, *loops: str) -> Func:
    """Put loops of a perfect nest into this order, outermost first."""
    if len(set(loops)) != len(loops):
        raise refuse(func, "reorder.twice", "reorder takes each loop once")
    if len(loops) < 2:
        return func
    spines = {name: loop_spine(func, name) for name in loops}
    first = min(spines.values(), key=len)
    chain = _chain(func, first, set(loops), spines)
    wanted = iter(loops)
    order = [target_loop(spines[next(wanted)]) if f.name in spines else f for f in chain]
    _check_extents(func, order)
    _check_reductions(func, chain, order)
    body: Stmt = chain[-1].body
    for f in reversed(order):
        body = replace(f, body=body)
    return replaced(func, first, body)


def _chain(func: Func, first: Spine, names: set[str], spines: dict[str, Spine]) -> list[For]:
    """The loops from the outermost named one to the innermost, each directly in the one before."""
    chain = [target_loop(first)]
    missing = names - {chain[0].name}
    while missing:
        inner = chain[-1].body
        if not isinstance(inner, For):
            name = min(missing)
            message = f"loops {chain[0].name} and {name} are not in one perfect nest"
            help = f"something else stands directly inside loop {chain[-1].name}"
            raise refuse(func, "reorder.not-nested", message, spines[name][-1], help=help)
        chain.append(inner)
        missing.discard(inner.name)
    return chain


def _check_extents(func: Func, order: list[For]) -> None:
    inside = {f.name for f in order}
    for f in order:
        inside.discard(f.name)
        if used := free_vars(f.extent) & inside:
            message = f"the extent of loop {f.name} depends on loop {min(used)}, now inside it"
            raise refuse(func, "reorder.extent", message, f)


def _check_reductions(func: Func, before: list[For], after: list[For]) -> None:
    """A loop around a whole reduction reinitializes it: the reduction's loops stay inside."""
    for block in blocks(before[-1].body):
        reduced = bound_loops(block, "R")
        if any(f.name in reduced for f in before) and _order(before, reduced) != _order(
            after, reduced
        ):
            check_once(func, block, before, "reorder", own=True)


def _order(loops: list[For], reduced: frozenset[str]) -> list[bool]:
    return [f.name in reduced for f in loops]
