"""Guards of a thread's loops that hold for all of their iterations are tested once.

    for k in serial(9) {                     if col < N {
      for p in unroll(4) {                     for k in serial(9) {
        if k * 4 + p < 33 & col < N {            if k * 4 + 3 < 33 {
          s += x[k * 4 + p, col]        →          for p in unroll(4) { s += ... }
        }                                        } else {
      }                                            for p in unroll(4) { if ... { s += ... } }
    }                                            } } }

A guard that does not depend on a loop goes out of it, and one that holds for all of its iterations
or for none, as that of a vector in a row of whole vectors. One that does depend on an unrolled
loop, and on a serial one or the grid around it, is tested for the last iteration first: nearly
always it holds, and the loads of all iterations go out before the first one is there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import gcd

from tilewright.arith.affine import stride_of, to_affine
from tilewright.arith.expr import TRUE, Binary, Expr, Var, as_int, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import conjuncts, free_vars, loads, substitute
from tilewright.core.node import node
from tilewright.ir.loop.nodes import For, Func, If, Stmt
from tilewright.ir.loop.thread_mapping import GRID, THREAD
from tilewright.ir.loop.walk import map_stmt, touched_buffers

OWN_KINDS = ("serial", "unroll", "vectorize")
# The most iterations of an unrolled loop that there are twice then, with guards and without.
MAX_TESTED = 16


def uniform_guards(func: Func) -> Func:
    """`func` with the guards in loops of a thread as far out as they can be."""
    memory = frozenset(buffer.name for buffer in func.params)
    return replace(func, body=_outside(func.body, _Loops(memory=memory)))


@node
class _Loops:
    """The loops around a statement that tell iterations apart which a thread does not unroll.

    Those of the `grid` count where threads read `memory` in no other loop, so that the loads of an
    unrolled one are all that is under way.
    """

    memory: frozenset[str]
    grid: frozenset[str] = frozenset()
    serial: frozenset[str] = frozenset()


def _outside(stmt: Stmt, loops: _Loops) -> Stmt:
    if isinstance(stmt, For) and stmt.kind == THREAD:
        return replace(stmt, body=_inside(stmt.body, loops))
    if isinstance(stmt, For) and stmt.kind == GRID:
        loops = replace(loops, grid=loops.grid | {stmt.name})
    elif isinstance(stmt, For):
        serial = loops.serial | ({stmt.name} if stmt.kind == "serial" else set())
        loops = replace(loops, grid=frozenset(), serial=serial)
    return map_stmt(stmt, lambda s: _outside(s, loops))


def _inside(stmt: Stmt, loops: _Loops) -> Stmt:
    """A statement of one thread, in some loops of its own."""
    if not (isinstance(stmt, For) and stmt.kind in OWN_KINDS):
        return map_stmt(stmt, lambda s: _inside(s, loops))
    within = replace(loops, serial=loops.serial | {stmt.name}) if stmt.kind == "serial" else loops
    conditions, inner = _guarded(_inside(stmt.body, within))
    conditions = [_for_all(c, stmt) for c in conditions]
    left = [c for c in conditions if stmt.name in free_vars(c)]
    out = [c for c in conditions if stmt.name not in free_vars(c)]
    loop = replace(stmt, body=_guard(left, inner))
    return _guard(out, _tested_first(loop, left, inner, loops))


def _guarded(stmt: Stmt) -> tuple[list[Expr], Stmt]:
    """The conditions on indices under which a statement does anything, and what it does."""
    if not isinstance(stmt, If) or stmt.orelse is not None or any(loads(stmt.cond)):
        return [], stmt
    return list(conjuncts(stmt.cond)), stmt.then


def _for_all(guard: Expr, loop: For) -> Expr:
    """A guard as one that does not depend on a loop, if it holds for all iterations or for none.

    All other terms of `i * 8 + loop < N * 4` are multiples of 4: it is so for up to 4 iterations.
    """
    extent = as_int(loop.extent)
    if not isinstance(guard, Binary) or guard.op != "lt" or extent is None:
        return guard
    difference = to_affine(guard.a) - to_affine(guard.b)
    step = difference.coeffs.get(Var(loop.name), 0)
    others = [c for atom, c in difference.coeffs.items() if atom is not Var(loop.name)]
    if step <= 0 or step * (extent - 1) >= gcd(difference.constant, *others):
        return guard
    first = simplify(substitute(guard, {loop.name: const(0)}))
    return guard if loop.name in free_vars(first) else first


def _guard(conditions: Iterable[Expr], body: Stmt) -> Stmt:
    together: Expr = TRUE
    for condition in conditions:
        together = together & condition
    return body if together is TRUE else If(together, body)


def _tested_first(loop: For, guards: list[Expr], body: Stmt, around: _Loops) -> Stmt:
    """An unrolled loop, without its guards where they hold for its last iteration."""
    changing = around.serial
    if not around.serial and touched_buffers(body)[0] & around.memory:
        changing = around.grid
    extent = as_int(loop.extent)
    if loop.kind != "unroll" or extent is None or not 1 < extent <= MAX_TESTED:
        return loop
    if not any(free_vars(guard) & changing for guard in guards):
        return loop
    if not all(_is_bound_above(guard, loop.name) for guard in guards):
        return loop
    last = {loop.name: const(extent - 1)}
    together: Expr = TRUE
    for guard in guards:
        together = together & simplify(substitute(guard, last))
    return If(together, replace(loop, body=body), loop)


def _is_bound_above(guard: Expr, loop: str) -> bool:
    """Whether a guard that holds in an iteration of a loop holds in those before."""
    if not isinstance(guard, Binary) or guard.op not in ("lt", "le"):
        return False
    return _increases(guard.a, loop) and loop not in free_vars(guard.b)


def _increases(e: Expr, loop: str) -> bool:
    """Whether an index gets no smaller from one iteration of a loop to the next."""
    if isinstance(e, Binary) and e.op == "floordiv" and (as_int(e.b) or 0) > 0:
        return _increases(e.a, loop)
    stride = stride_of(e, loop)
    return stride is not None and stride >= 0
