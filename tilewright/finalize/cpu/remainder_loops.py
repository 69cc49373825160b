"""Remainder loops: what full tiles leave of a loop of symbolic length, as loops of exact extent.

A masked copy of the tile costs as much for one element as for all but one, and many times that on
targets without masked vectors. The schedule annotates the loops whose remainders are worth it.

    for o in serial((N + 15) // 16) {             for o in serial(N // 16) { ... }
      for v in unroll(4) {partition=2} {                for o in serial((N + 15) // 16 - N // 16) {
        for i in vectorize(4) {            →        for v in serial(N // 4 % 4) {
          if o * 16 + v * 4 + i < N { A }             for i in vectorize(4) { A }
        }                                           }
      }                                             for i in serial(N % 4) { A }
    }                                             }
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilewright.arith.affine import stride_of
from tilewright.arith.expr import Binary, Expr, Var, as_int, const, maximum, minimum
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import conjuncts, free_vars, substitute
from tilewright.ir.loop.annotations import PARTITION
from tilewright.ir.loop.nodes import For, If, Stmt
from tilewright.ir.loop.walk import rewrite_stmts, substitute_stmt

# The value of `partition` by which the remainders of a loop are partitioned as well.
IN_REMAINDERS = 2


def tile_loops(loop: For, condition: Binary) -> tuple[For, ...]:
    """The loops in `loop` that number the elements of its tiles, from the outermost on.

    None where the condition does more than leave out the elements from some number on, or where no
    loop is marked.
    """
    nest: list[For] = []
    stmt: Stmt = loop
    while isinstance(stmt, For):
        nest.append(stmt)
        stmt = stmt.body
    if not isinstance(stmt, If) or stmt.orelse is not None:
        return ()
    position = simplify(condition.a - condition.b)
    inner = tuple(s for s in nest[1:] if s.name in free_vars(position))
    marked = any(PARTITION.of(s) == IN_REMAINDERS for s in (loop, *inner))
    if not marked or all(c is not condition for c in conjuncts(stmt.cond)):
        return ()
    return inner if _number_elements(position, (loop, *inner)) else ()


def _number_elements(position: Expr, loops: Sequence[For]) -> bool:
    """Whether loops number elements one by one: each moves as far as those inside of it go."""
    step = 1
    for loop in reversed(loops):
        if stride_of(position, loop.name) != step:
            return False
        step *= as_int(loop.extent) or 0
    return True


def cut_again(loop: For, tile: For) -> For:
    """`loop`, the outermost loop of its tiles no longer written out, so that it can be cut."""

    def serial(s: Stmt) -> Stmt | None:
        return replace(tile, kind="serial") if s is tile else None

    return replace(loop, body=rewrite_stmts(loop.body, serial))


def exact_rest(loop: For, tile: For, condition: Binary, count: Expr, bare: Stmt) -> For:
    """The elements of `loop` after `count` of its iterations, which have one loop, one by one.

    `bare` is the loop's body without the condition.
    """
    step = as_int(tile.extent)
    assert step is not None
    zero = {loop.name: const(0), tile.name: const(0)}
    elements = -substitute(simplify(condition.a - condition.b), zero)
    left = simplify(minimum(elements, loop.extent * step) - count * step)
    left = left if prove(const(0) <= left) else maximum(left, const(0))

    def unwrap(s: Stmt) -> Stmt | None:
        return s.body if isinstance(s, For) and s.name == tile.name else None

    at = {loop.name: count, tile.name: Var(loop.name)}
    return For(
        loop.name, simplify(left), "serial", substitute_stmt(rewrite_stmts(bare, unwrap), at)
    )
