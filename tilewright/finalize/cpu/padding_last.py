"""Padding last: the iterations of a reduction that only meet padding are moved to its end.

    for r in serial(3) {padding_last=1} {
      c[0] += x[h + r - 1 ? 0 < h + r & h + r < H + 1] * w[r]
    }
                                                  ↓
    for r in serial(n) { c[0] += x[h + r + lo - 1] * w[r + lo] }
    for r.padding in serial(3 - n) { c[0] += 0.0 * w[r.padding + (r.padding < lo ? 0 : n)] }

The iterations in between have no mask for it, and those before and behind them share one copy of
the code, which loads no padding. Adding zeros later changes no sum. The schedule annotates the
loops over the rows of a window.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import reduce

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import (
    TRUE,
    Binary,
    Expr,
    Load,
    Select,
    Var,
    const,
    maximum,
    minimum,
    select,
)
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import conjuncts, free_vars, loads, rewrite, subexpressions
from tilewright.core.dtypes import I64
from tilewright.ir.loop.annotations import PADDING_LAST
from tilewright.ir.loop.nodes import For, Func, Stmt, Store
from tilewright.ir.loop.rename import rename_loops
from tilewright.ir.loop.walk import (
    expressions,
    loops,
    map_exprs,
    map_stmt,
    seq,
    statements_in,
    substitute_stmt,
)


def padding_last(func: Func) -> Func:
    """`func` with the padding of marked loops in loops of their own."""
    return replace(func, body=_moved(func.body))


def _moved(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For) and PADDING_LAST.is_on(stmt):
        guards = _guards(stmt)
        if guards:
            return _split(stmt, guards)
    return map_stmt(stmt, _moved)


def _guards(loop: For) -> dict[Expr, int]:
    """The conditions without which no masked load does anything, and the loop's stride in each."""
    inner = {s.name for s in loops(loop.body)}
    first, *others = [conjuncts(c) for c in _conditions(loop.body)] or [()]
    shared = (c for c in first if all(c in other for other in others))
    strides = {c: _stride(c, loop) for c in shared if free_vars(c).isdisjoint(inner)}
    return {c: stride for c, stride in strides.items() if stride}


def _conditions(stmt: Stmt) -> Iterator[Expr]:
    """What loads and choices depend on."""
    for root in expressions(stmt):
        for e in subexpressions(root):
            if isinstance(e, Load) and e.mask is not None:
                yield e.mask
            elif isinstance(e, Select):
                yield e.cond


def _stride(condition: Expr, loop: For) -> int:
    """By how much `a - b` grows in an iteration where the condition is `a < b`; 0 for others."""
    if not isinstance(condition, Binary) or condition.op != "lt" or condition.a.dtype != I64:
        return 0
    if next(loads(condition), None) is not None:
        return 0
    distance = simplify(condition.a - condition.b)
    stride = stride_of(distance, loop.name) or 0
    rest = simplify(distance - Var(loop.name) * stride)
    return 0 if loop.name in free_vars(rest) else stride


def _split(loop: For, guards: dict[Expr, int]) -> Stmt:
    """The iterations from `low` on in which all guards hold, then those before and behind them."""
    low, high = _range(loop, guards)
    count = simplify(maximum(high - low, const(0)))
    body = map_exprs(loop.body, lambda e: rewrite(e, lambda x: TRUE if x in guards else None))
    inside = substitute_stmt(body, {loop.name: low + Var(loop.name)})
    first = replace(loop, extent=count, body=_moved(inside))
    padding = Var(f"{loop.name}.padding")
    place = padding + select(padding < low, const(0), count)
    outside = _rolled(_without_loads(loop.body, {*guards}))
    outside = rename_loops(substitute_stmt(outside, {loop.name: place}), "padding")
    return seq(first, For(padding.name, simplify(loop.extent - count), loop.kind, outside))


def _range(loop: For, guards: dict[Expr, int]) -> tuple[Expr, Expr]:
    """The first iteration in which all guards hold, and the first behind it in which one fails."""
    low: Expr = const(0)
    high = loop.extent
    for condition, stride in guards.items():
        assert isinstance(condition, Binary)
        start = simplify(condition.a - condition.b - Var(loop.name) * stride)
        if stride > 0:
            high = minimum(high, (stride - 1 - start) // stride)
        else:
            low = maximum(low, start // -stride + 1)
    return simplify(low), simplify(high)


def _rolled(nest: Stmt) -> Stmt:
    """A nest whose unrolled sums are loops: without loads, there is none to reuse."""
    around: list[For] = []
    while isinstance(nest, For):
        around.append(nest)
        nest = nest.body
    stores = [s for s in statements_in(nest) if isinstance(s, Store)]
    places = {name for s in stores for i in s.indices for name in free_vars(i)}
    sums = [replace(s, kind="serial") for s in around if s.name not in places]
    kept = [s for s in around if s.name in places]
    return reduce(lambda body, s: replace(s, body=body), reversed([*sums, *kept]), nest)


def _without_loads(stmt: Stmt, guards: set[Expr]) -> Stmt:
    """`stmt` where not all guards hold: what they mask is zero, or the other choice."""

    def value(e: Expr) -> Expr | None:
        if isinstance(e, Load) and e.mask is not None and guards <= {*conjuncts(e.mask)}:
            return const(0, e.dtype)
        return e.b if isinstance(e, Select) and guards <= {*conjuncts(e.cond)} else None

    return map_exprs(stmt, lambda e: rewrite(e, value))
