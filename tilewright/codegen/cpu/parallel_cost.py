"""The work of a parallel loop of symbolic size, which decides at run time whether threads pay.

Schedules run small loops of constant size on one thread. A loop of symbolic size is always
parallel; the thread pool compares its work with the parallel grain.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilewright.arith.bounds import upper
from tilewright.arith.expr import Binary, Cast, Expr, Load, Select, Unary, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import operands, subexpressions
from tilewright.ir.loop.nodes import Alloc, For, If, Seq, Stmt, Store, Tile

_COUNTED = (Binary, Select, Cast, Unary)


def loop_work(loop: For) -> Expr | None:
    """An upper bound of the operations of all iterations, in the sizes; None if none is found."""
    total = _steps(loop, {})
    # a bound that loads memory would do so before the loop's inputs are computed
    if total is None or any(isinstance(e, Load) for e in subexpressions(total)):
        return None
    return simplify(total)


def _steps(stmt: Stmt, around: Mapping[str, Expr]) -> Expr | None:
    match stmt:
        case For(name, extent, _, body):
            times = upper(extent, around)
            if times is None:
                return None
            inner = _steps(body, {**around, name: times})
            return None if inner is None else times * inner
        case Seq(stmts):
            return _sum([_steps(s, around) for s in stmts])
        case If(_, then, orelse):
            return _sum([_steps(s, around) for s in (then, orelse) if s is not None])
        case Alloc(_, body):
            return _steps(body, around)
        case Store(_, indices, value):
            return const(max(_operations(value), 1) * indices[0].lanes)
        case Tile():
            return _tile_steps(stmt, around)
        case _:
            return None


def _operations(value: Expr) -> int:
    """The operations of a value, those on the indices of what it reads left out."""
    seen: set[Expr] = set()
    count, stack = 0, [value]
    while stack:
        e = stack.pop()
        if e not in seen and not isinstance(e, Load):
            seen.add(e)
            count += isinstance(e, _COUNTED)
            stack.extend(operands(e))
    return count


def _tile_steps(tile: Tile, around: Mapping[str, Expr]) -> Expr | None:
    """The elements of all operands: what a tile takes is at least that."""
    sizes: list[Expr | None] = []
    for region in (tile.dst, *tile.srcs):
        size: Expr = const(1)
        for _, extent in region.ranges:
            times = upper(extent, around)
            if times is None:
                return None
            size = size * times
        sizes.append(size)
    return _sum(sizes)


def _sum(parts: list[Expr | None]) -> Expr | None:
    total: Expr = const(0)
    for part in parts:
        if part is None:
            return None
        total = total + part
    return total
