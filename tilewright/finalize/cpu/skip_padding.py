"""Skip padding: sums are left out where all that they read of a padded copy is padding.

    padded[y] = x[y - 4] ? 3 < y & y < H + 4
    for r in serial(5) {
      for c in serial(64) {skip_padding=1} {
        for i in unroll(3) { s[i] += padded[y + i + 4 * r] * w[r, c] }
      }
    }
                                        ↓
      if 3 < y + 2 + 4 * r & y + 4 * r < H + 4 { for c in serial(64) { ... } }

What the rows of a tile read lies between what its first and its last row read, unless one of them
is in the next line: then all of the line may be read. The schedule annotates loops only where
weights are finite (`finite_weights`), so that zeros times weights add nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.arith.affine import to_affine
from tilewright.arith.expr import TRUE, Binary, Cast, Expr, Load, Var, as_int, binary, const, select
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars
from tilewright.ir.loop.annotations import SKIP_PADDING
from tilewright.ir.loop.nodes import For, Func, If, Stmt, Store
from tilewright.ir.loop.padded_copies import Inside, padded_copies
from tilewright.ir.loop.walk import loops, map_stmt, statements_in

Copies = Mapping[str, tuple[Inside, ...]]


def skip_padding(func: Func) -> Func:
    """`func` with conditions around marked loops."""
    if not any(SKIP_PADDING.is_on(loop) for loop in loops(func.body)):
        return func
    return replace(func, body=_guarded(func.body, padded_copies(func.body)))


def _guarded(stmt: Stmt, copies: Copies) -> Stmt:
    if isinstance(stmt, For) and SKIP_PADDING.is_on(stmt):
        condition = _reads_data(stmt, copies)
        return stmt if condition is TRUE else If(condition, stmt)
    return map_stmt(stmt, lambda s: _guarded(s, copies))


def _reads_data(loop: For, copies: Copies) -> Expr:
    """When a loop reads more than padding: a condition that holds at least then."""
    inner = {s.name: s.extent for s in loops(loop)}
    sums = [s for s in statements_in(loop) if isinstance(s, Store)]
    read = _factor(sums[0], copies) if len(sums) == 1 else None
    if read is None:
        return TRUE
    condition: Expr = TRUE
    for inside in copies[read.buffer]:
        index = read.indices[inside.dim]
        least, most = _extreme(index, inner, False), _extreme(index, inner, True)
        known = free_vars(inside.begin) | free_vars(inside.end)
        if least is not None and most is not None and known.isdisjoint(inner):
            condition = condition & (inside.begin <= most) & (least < inside.end)
    return simplify(condition) if free_vars(condition).isdisjoint(inner) else TRUE


def _factor(s: Store, copies: Copies) -> Load | None:
    """The factor from a padded copy of the product that a statement adds to a sum."""
    if not isinstance(s.value, Binary) or s.value.op != "add" or s.value.a != s.target:
        return None
    term = s.value.b
    if not isinstance(term, Binary) or term.op != "mul":
        return None
    for e in (term.a, term.b):
        plain = e.a if isinstance(e, Cast) else e
        if isinstance(plain, Load) and plain.buffer in copies:
            return plain
    return None


def _extreme(e: Expr, inner: Mapping[str, Expr], greatest: bool) -> Expr | None:
    """The least or greatest value of an index over inner loops; `None` if it is not known."""
    if free_vars(e).isdisjoint(inner):
        return e
    form = to_affine(e)
    total: Expr = const(form.constant)
    for atom, factor in form.coeffs.items():
        end = _end(atom, inner, greatest == (factor > 0))
        if end is None:
            return None
        total = total + end * factor
    return simplify(total)


def _end(e: Expr, inner: Mapping[str, Expr], greatest: bool) -> Expr | None:
    """The same of what is no sum."""
    if free_vars(e).isdisjoint(inner):
        return e
    if isinstance(e, Var):
        return simplify(inner[e.name] - 1) if greatest else const(0)
    if not isinstance(e, Binary):
        return None
    if e.op in ("min", "max"):
        a, b = (_extreme(x, inner, greatest) for x in (e.a, e.b))
        return None if a is None or b is None else binary(e.op, a, b)
    period = as_int(e.b)
    first, last = _extreme(e.a, inner, False), _extreme(e.a, inner, True)
    if period is None or period <= 0 or first is None or last is None:
        return None
    if e.op == "floordiv":
        return simplify((last if greatest else first) // period)
    if e.op != "mod":
        return None
    together = (first // period).eq(last // period)
    if greatest:
        return select(together, last % period, const(period - 1))
    return select(together, first % period, const(0))
