"""`split(loop, [?, f1, f2, ...])`: split a loop into a nest of loops `loop.0, loop.1, ...`.

    for i in serial(M) {                        for i.0 in serial((M + 7) // 8) {
      block "C" [vi: S(M) = i] ...                for i.1 in serial(8) {
    }                                      →        block "C" [vi: S(M) = i.0 * 8 + i.1] ...
                                                      where i.0 * 8 + i.1 < M
                                                  }
                                                }

At most one factor may be left open; it becomes the extent divided by the others, rounded up. Where
the product of the factors is not proved equal to the extent, every block inside is guarded.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.arith.affine import from_affine, to_affine
from tilewright.arith.expr import TRUE, Expr, Var, as_int, ceildiv, const
from tilewright.arith.simplify import prove_less, simplify
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


def split(func: Func, loop: str, factors: Sequence[int | None]) -> Func:
    """Split a loop into one loop a factor, outermost first; `None` is what is left over."""
    spine = loop_spine(func, loop)
    old = target_loop(spine)
    extents = _extents(func, old, factors)
    names = split_names(func, loop, factors)
    check_loop_free(func, *names)
    scope = {**extents_of(spine[:-1]), **dict(zip(names, extents, strict=True))}
    index: Expr = const(0)
    for name, extent in zip(names, extents, strict=True):
        index = index * extent + Var(name)
    index = simplify(index, scope)
    guard = TRUE if prove_less(index, old.extent, scope) else index < old.extent
    body = with_loops(old.body, {loop: index}, scope, guard)
    for n, (name, extent) in reversed(tuple(enumerate(zip(names, extents, strict=True)))):
        body = For(name, extent, old.kind, body, old.annotations if n == 0 else ())
    return replaced(func, spine, body)


def split_names(func: Func, loop: str, factors: Sequence[int | None]) -> tuple[str, ...]:
    """The names of the loops that `split` makes."""
    return tuple(f"{loop}.{n}" for n in range(len(factors)))


def _extents(func: Func, loop: For, factors: Sequence[int | None]) -> list[Expr]:
    given = [f for f in factors if f is not None]
    if len(given) < len(factors) - 1 or not factors:
        message = (
            f"cannot split loop {loop.name}: {len(factors) - len(given)} factors are left open"
        )
        raise refuse(func, "split.open", message, loop, help="leave at most one open")
    product = 1
    for factor in given:
        if factor < 1:
            message = f"cannot split loop {loop.name} by {factor}"
            raise refuse(func, "split.factor", message, loop, help="use factors of at least 1")
        product *= factor
    extent = as_int(loop.extent)
    if len(given) == len(factors) and (extent is None or product < extent):
        message = f"the factors of loop {loop.name} give {product} of {loop.extent} iterations"
        raise refuse(func, "split.product", message, loop, help="leave one factor open: None")
    rest = _quotient(loop.extent, product)
    return [rest if f is None else const(f) for f in factors]


def _quotient(extent: Expr, by: int) -> Expr:
    """`extent / by` rounded up; exact multiples are divided term by term."""
    form = to_affine(extent)
    if form.constant % by == 0 and form.gcd() % by == 0:
        return from_affine(form.divide(by))
    return simplify(ceildiv(extent, by))
