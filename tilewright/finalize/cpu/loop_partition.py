"""Loop partitioning: a loop whose guard holds for all but its last iterations is split in two, so
that the main part has no guard; likewise one whose loads are masked in its first iterations.

    for i.0 in serial((N + 3) // 4) {               for i.0 in serial(N // 4) {
      for i.1 in vectorize(4) {                       for i.1 in vectorize(4) { A }
        if i.0 * 4 + i.1 < N { A }             →    }
      }                                             for i.0.tail in serial((N + 3) // 4 - N // 4) {
    }                                                 ... guarded, at iteration N // 4 + i.0.tail
                                                    }

Only guards that depend on a vectorised loop, or on one annotated `partition`, are worth a copy of
the code: a guard on a scalar costs one predictable branch. A long part in which a guard does not
hold is split again by other guards, as after the first operand of a concatenation. Where loops were
fused, the iterations that need a guard are not the last ones; a loop annotated `versioned` tests
that in each iteration. So does a parallel loop of known length, whose last iterations would
otherwise wait for the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_
from typing import TypeGuard

from tilewright.arith.affine import stride_of
from tilewright.arith.bounds import upper
from tilewright.arith.expr import (
    FALSE,
    TRUE,
    Binary,
    Expr,
    Select,
    Var,
    as_int,
    const,
    maximum,
    minimum,
)
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import conjuncts, free_vars, loads, rewrite, subexpressions
from tilewright.core.dtypes import I64
from tilewright.finalize.cpu.remainder_loops import IN_REMAINDERS, cut_again, exact_rest, tile_loops
from tilewright.ir.loop.annotations import PARTITION, VERSIONED
from tilewright.ir.loop.nodes import For, Func, If, Stmt
from tilewright.ir.loop.rename import rename_loops
from tilewright.ir.loop.walk import (
    map_exprs,
    map_stmt,
    own_expressions,
    rewrite_stmts,
    seq,
    statements,
    statements_in,
    substitute_stmt,
)

Extents = Mapping[str, Expr]

# So many iterations that need a guard are split again: other guards hold in most of them.
MIN_LONG_TAIL = 4
# So many choices are decided for whole iterations, each by a copy of the code.
MAX_CHOICES = 4


def loop_partition(func: Func) -> Func:
    """`func` with the guards of vectorised loops hoisted out of the main iterations."""
    return replace(func, body=_partition(func.body))


def _partition(stmt: Stmt) -> Stmt:
    if isinstance(stmt, For) and stmt.kind not in ("vectorize", "unroll"):
        guards = list(_guards(stmt))
        if guards:
            return _split(stmt, _tightest(guards))
        if VERSIONED.is_on(stmt):
            return replace(stmt, body=_tested(stmt.body))
    return map_stmt(stmt, _partition)


def _partition_again(tail: For) -> Stmt:
    """A long part that was split off, split by the guards that hold in some of it."""
    guards = [g for g in _guards(tail) if not _never_holds(g, tail)]
    return _split(tail, _tightest(guards)) if guards else map_stmt(tail, _partition)


def _split(loop: For, guard: _Guard) -> Stmt:
    return _cut(loop, guard) if guard.grows else _cut_head(loop, guard)


@dataclass(frozen=True)
class _Guard:
    """A condition `a < b` that surely holds before iteration `at` if it grows, else from it on."""

    condition: Expr
    at: Expr
    grows: bool


def _tightest(guards: Sequence[_Guard]) -> _Guard:
    """The guard whose partition makes the others of its kind hold as well, as far as is known."""
    alike = [g for g in guards if g.grows == guards[0].grows and as_int(g.at) is not None]
    if as_int(guards[0].at) is None:
        return guards[0]
    return (min if guards[0].grows else max)(alike, key=lambda g: as_int(g.at) or 0)


def _guards(loop: For) -> Iterator[_Guard]:
    """The guards under a loop that are worth a copy of it."""
    for path, stmt in statements(loop.body):
        around = [s for s in (*path, stmt) if isinstance(s, For)]
        vectors = {s.name for s in around if s.kind == "vectorize"}
        vectors |= {s.name for s in (loop, *around) if PARTITION.is_on(s)}
        if not vectors:
            continue
        inner = {s.name: s.extent for s in around}
        masks = set(_masks(stmt))
        for condition in _conditions(stmt):
            if free_vars(condition) & vectors:
                guard = _guard(loop, condition, inner)
                if guard is not None and (guard.grows or condition in masks):
                    yield guard


def _never_holds(guard: _Guard, loop: For) -> bool:
    """Whether no iteration of a loop of known length can go without a guard."""
    at, extent = as_int(guard.at), as_int(loop.extent)
    if at is None or extent is None:
        return False
    return at <= 0 if guard.grows else at >= extent


def _tested(body: Stmt, depth: int = 0) -> Stmt:
    """An iteration without guards where they all hold, else as it was.

    Where none of its elements is chosen by the first choice, it is tested again without that.
    """
    bare, holds = body, []
    while (found := next(_sometimes_held(bare), None)) is not None:
        condition, held = found
        bare = _without(bare, condition)
        holds.append(held)
    if not holds:
        return _partition(body)
    rest = rename_loops(body, f"rest{depth or ''}")
    if _worth_copies(rest):
        rest = _partition(rest)
    choice = next(_limits(body, _choices), None) if depth < MAX_CHOICES else None
    never = FALSE if choice is None else _never_chosen(*choice)
    if choice is not None and never is not FALSE:
        other = rename_loops(_without(body, _negated(choice[0])), f"else{depth or ''}")
        rest = If(never, _tested(other, depth + 1), rest)
    return If(reduce(and_, dict.fromkeys(holds)), _partition(bare), rest)


def _sometimes_held(body: Stmt) -> Iterator[tuple[Binary, Expr]]:
    """Conditions in an iteration, choices first, and when they hold throughout; unless never."""
    for conditions in (_choices, _conditions, _clamps):
        for condition, inner in _limits(body, conditions):
            greatest = upper(simplify(condition.a - condition.b), inner)
            if greatest is not None and not free_vars(greatest) & {*inner}:
                held = simplify(greatest < 0)
                if held is not FALSE:  # else an inner loop may be split
                    yield condition, held


def _limits(
    body: Stmt, conditions: Callable[[Stmt], Iterator[Expr]]
) -> Iterator[tuple[Binary, Extents]]:
    """The conditions on indices that differ within an iteration, and the loops of those."""
    for path, stmt in statements(body):
        inner = {s.name: s.extent for s in (*path, stmt) if isinstance(s, For)}
        for condition in conditions(stmt):
            if _is_index_guard(condition) and free_vars(condition) & {*inner}:
                yield condition, inner


def _never_chosen(condition: Binary, inner: Extents) -> Expr:
    """When a condition holds nowhere in an iteration, as far as is known."""
    greatest = upper(simplify(condition.b - 1 - condition.a), inner)
    known = greatest is not None and not free_vars(greatest) & {*inner}
    return simplify(greatest < 0) if greatest is not None and known else FALSE


def _negated(condition: Binary) -> Expr:
    return simplify(condition.b - 1) < condition.a


def _conditions(stmt: Stmt) -> Iterator[Expr]:
    """The conditions under which a statement, or a load or choice in it, does something."""
    if isinstance(stmt, If):
        yield from conjuncts(stmt.cond)
    yield from _masks(stmt)
    yield from _choices(stmt)


def _choices(stmt: Stmt) -> Iterator[Expr]:
    for root in own_expressions(stmt):
        for e in subexpressions(root):
            if isinstance(e, Select):
                yield from conjuncts(e.cond)


def _clamps(stmt: Stmt) -> Iterator[Expr]:
    """When indices are what they are without their clamps."""
    for root in own_expressions(stmt):
        for e in subexpressions(root):
            if _is_clamp(e):
                yield e.a < e.b + 1


def _masks(stmt: Stmt) -> Iterator[Expr]:
    for root in own_expressions(stmt):
        for load in loads(root):
            if load.mask is not None:
                yield from conjuncts(load.mask)


def _guard(loop: For, condition: Expr, inner: Extents) -> _Guard | None:
    """The iterations in which `condition` holds for all inner iterations, if they are known."""
    if not _is_index_guard(condition):
        return None
    rest = simplify(condition.a - condition.b)
    step = stride_of(rest, loop.name)
    if not step:
        return None
    rest = simplify(rest - Var(loop.name) * step)
    if loop.name in free_vars(rest):
        return None
    greatest = upper(rest, inner)
    # An inner loop that runs differently often in each iteration leaves its mark there.
    if greatest is None or free_vars(greatest) & {*inner, loop.name}:
        return None
    at = (step - 1 - greatest) // step if step > 0 else greatest // -step + 1
    return _Guard(condition, simplify(at), step > 0)


def _is_index_guard(condition: Expr) -> TypeGuard[Binary]:
    """Whether `condition` is `a < b` of indices, the same whenever it is computed."""
    if not isinstance(condition, Binary) or condition.op != "lt":
        return False
    return condition.a.dtype == I64 and next(loads(condition), None) is None


def _cut(loop: For, guard: _Guard) -> Stmt:
    """The iterations before the guard's end without it, then those that need it."""
    count = _within(guard.at, loop)
    body = _without(loop.body, guard.condition)
    first = For(loop.name, count, loop.kind, body, loop.annotations)
    rest = simplify(loop.extent - count)
    if as_int(rest) == 0:
        return _partition(first)
    tail = _tail(loop, guard, count, rest, body)
    if as_int(count) == 0:
        return map_stmt(loop if loop.kind == "parallel" else tail, _partition)
    if (as_int(rest) or 0) >= MIN_LONG_TAIL:
        again = _partition_again(replace(tail, kind=loop.kind))
        return _in_turn(loop, count, _partition(first), again)
    return _in_turn(loop, count, _partition(first), _partition_in(tail))


def _in_turn(loop: For, count: Expr, first: Stmt, last: Stmt) -> Stmt:
    """The first `count` iterations of a loop, then the others; beside them if it is parallel."""
    one = isinstance(first, For) and isinstance(last, For)
    if not one or loop.kind != "parallel" or not as_int(count) or as_int(loop.extent) is None:
        return seq(first, last)
    assert isinstance(first, For)
    assert isinstance(last, For)
    here = Var(loop.name)
    early = substitute_stmt(first.body, {first.name: here})
    late = substitute_stmt(last.body, {last.name: here - count})
    return replace(loop, body=If(here < count, early, late))


def _tail(loop: For, guard: _Guard, count: Expr, rest: Expr, bare: Stmt) -> For:
    """The last iterations of a loop; of tiles, where `rest` is symbolic, with exact extents."""
    assert isinstance(guard.condition, Binary)
    tile = tile_loops(loop, guard.condition) if as_int(rest) is None else ()
    if len(tile) == 1:
        exact = exact_rest(loop, tile[0], guard.condition, count, bare)
        return _copy(exact, "tail", const(0), exact.extent)
    return _copy(cut_again(loop, tile[0]) if tile else loop, "tail", count, rest)


def _cut_head(loop: For, guard: _Guard) -> Stmt:
    """The iterations that need the guard, then those behind its begin without it."""
    count = _within(guard.at, loop)
    rest = simplify(loop.extent - count)
    if as_int(rest) == 0:
        return map_stmt(loop, _partition)
    body = _without(loop.body, guard.condition)
    if as_int(count) == 0:
        return _partition(replace(loop, body=body))
    head = _copy(loop, "head", const(0), count)
    moved = substitute_stmt(body, {loop.name: count + Var(loop.name)})
    main = _partition(replace(loop, extent=rest, body=moved))
    return _in_turn(loop, count, _partition_in(head), main)


def _within(position: Expr, loop: For) -> Expr:
    """A position clamped to the iterations of a loop."""
    count = position if prove(const(0) <= position) else maximum(position, const(0))
    return simplify(count if prove(count <= loop.extent) else minimum(count, loop.extent))


def _copy(loop: For, part: str, start: Expr, count: Expr) -> For:
    """Some iterations of a loop, under names of their own."""
    name = f"{loop.name}.{part}"
    at = start if prove(count <= 1) else start + Var(name)
    body = rename_loops(substitute_stmt(loop.body, {loop.name: at}), part)
    return For(name, count, "serial" if loop.kind == "parallel" else loop.kind, body)


def _partition_in(part: For) -> For:
    """The first or last iterations, the loops in them partitioned if worth another copy."""
    return replace(part, body=_partition(part.body)) if _worth_copies(part) else part


def _worth_copies(part: Stmt) -> bool:
    """Whether the loops in a remainder are partitioned as well."""
    return any(isinstance(s, For) and PARTITION.of(s) == IN_REMAINDERS for s in statements_in(part))


def _without(stmt: Stmt, condition: Expr) -> Stmt:
    """`stmt` where `condition` is known to hold."""

    def value(e: Expr) -> Expr | None:
        if isinstance(e, Select) and e.cond is FALSE:
            return e.b
        if e is condition or _is_shifted(e, condition):
            return TRUE
        if _is_clamp(e) and _is_shifted(e.a < e.b + 1, condition):
            return e.a
        return FALSE if _is_negation(e, condition) else None

    def known(e: Expr) -> Expr:
        return rewrite(e, value)

    def drop(s: Stmt) -> Stmt | None:
        return s.then if isinstance(s, If) and s.cond is TRUE else None

    return rewrite_stmts(map_exprs(stmt, known), drop)


def _is_clamp(e: Expr) -> TypeGuard[Binary]:
    """Whether `e` is the lesser of two indices."""
    return isinstance(e, Binary) and e.op == "min" and e.dtype == I64


def _is_shifted(e: Expr, condition: Expr) -> bool:
    """Whether `e` is the condition with the same added on both sides."""
    if not _is_index_guard(e) or not _is_index_guard(condition):
        return False
    return as_int(simplify(e.a - e.b - condition.a + condition.b)) == 0


def _is_negation(e: Expr, condition: Expr) -> bool:
    """Whether `e` holds where the condition `a < b` does not: `b - 1 < a`."""
    if not _is_index_guard(e) or not _is_index_guard(condition):
        return False
    return as_int(simplify(e.a - e.b + condition.a - condition.b)) == -1
