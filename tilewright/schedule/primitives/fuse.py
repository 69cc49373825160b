"""`fuse(a, b, ...)`: fuse perfectly nested loops into `a_b` (of b's name the last part).

for mm.i0 in serial(M) {                           for mm.i0_i1 in serial(M * N) {
  for mm.i1 in serial(N) {                           block "mm" [vi: S(M) = mm.i0_i1 // N,
    block "mm" [vi: S(M) = mm.i0, vj: ...]    →                  vj: S(N) = mm.i0_i1 % N]
  }                                                }
}
"""

from __future__ import annotations

from tilewright.arith.expr import TRUE, Expr, Var, product
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.nodes import For, Func
from tilewright.schedule.diagnostics import refuse
from tilewright.schedule.tree import (
    check_loop_free,
    extents_of,
    loop_spine,
    replaced,
    target_loop,
    with_loops,
)


def fuse(func: Func, *loops: str) -> Func:
    """Make one loop of perfectly nested loops, given outermost first."""
    if len(loops) < 2:
        raise refuse(func, "fuse.count", "fuse takes at least two loops")
    spine = loop_spine(func, loops[0])
    nest = _nest(func, target_loop(spine), loops)
    name = fused_name(func, *loops)
    check_loop_free(func, name)
    extent = simplify(product(tuple(f.extent for f in nest)), extents_of(spine[:-1]))
    scope = {**extents_of(spine[:-1]), name: extent}
    values: dict[str, Expr] = {}
    rest: Expr = Var(name)
    for f in reversed(nest[1:]):
        values[f.name] = simplify(rest % f.extent, scope)
        rest = simplify(rest // f.extent, scope)
    values[nest[0].name] = rest
    body = with_loops(nest[-1].body, values, scope, TRUE)
    return replaced(func, spine, For(name, extent, nest[0].kind, body, nest[0].annotations))


def fused_name(func: Func, *loops: str) -> str:
    """The name of the loop that `fuse` makes."""
    return "_".join((loops[0], *(name.rpartition(".")[2] for name in loops[1:])))


def _nest(func: Func, outer: For, names: tuple[str, ...]) -> list[For]:
    nest = [outer]
    for name in names[1:]:
        last, inner = nest[-1], nest[-1].body
        if not isinstance(inner, For) or inner.name != name:
            at = target_loop(loop_spine(func, name))
            message = f"loop {name} is not the only thing directly inside loop {last.name}"
            raise refuse(func, "fuse.not-nested", message, at, help="reorder the loops first")
        if inner.kind != outer.kind:
            message = f"loop {name} is {inner.kind}, loop {outer.name} is {outer.kind}"
            raise refuse(func, "fuse.kind", message, inner, help="fuse before choosing kinds")
        if used := free_vars(inner.extent) & {f.name for f in nest}:
            message = f"the extent of loop {name} depends on loop {min(used)}"
            raise refuse(func, "fuse.extent", message, inner)
        nest.append(inner)
    return nest
