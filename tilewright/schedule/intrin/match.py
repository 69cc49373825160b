"""Whether the body of a block is what an intrinsic computes.

The loops of both must correspond one to one, and each access must move with them in the same way:
`w[vj.o, vk.o, j, k]` moves like `b[j, k]`, what does not depend on the loops being its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import permutations

from tilewright.arith.affine import Affine, to_affine
from tilewright.arith.expr import Binary, Cast, Const, Expr, Load, Var, as_int
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, substitute
from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, For, Func, Stmt, Store
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import substitute_stmt
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.schedule.rewrite_accesses import simplify_loads

_COMMUTATIVE = ("add", "mul", "min", "max", "and", "or")


@node
class Match:
    """The buffer that each operand of a pattern is, and the values of its symbolic extents."""

    operands: tuple[tuple[str, str], ...]
    sizes: tuple[tuple[str, int], ...]


@cache
def pattern_of(name: str) -> Func:
    """The loops that an intrinsic computes."""
    return parse_func(INTRINSICS[name].pattern)


def match_intrinsic(name: str, block: Block) -> Match | None:
    """How the body of `block` is what the intrinsic computes, `None` if it is not."""
    pattern, actual = _nest(pattern_of(name).body), _nest(block.body)
    if pattern is None or actual is None or len(pattern[0]) != len(actual[0]):
        return None
    for loops in permutations(actual[0]):
        found = _Matcher(pattern[0], loops).run(pattern[1], actual[1])
        if found is not None:
            return found
    return None


def _nest(stmt: Stmt) -> tuple[tuple[For, ...], Store] | None:
    """The loops of a perfect nest and the store in it, in terms of what is outside."""
    loops: list[For] = []
    while isinstance(stmt, For):
        loops.append(stmt)
        stmt = stmt.body
    if isinstance(stmt, Block):
        if stmt.init is not None:
            return None
        stmt = substitute_stmt(stmt.body, {it.name: it.binding for it in stmt.iters})
    if not isinstance(stmt, Store) or stmt.mask is not None:
        return None
    extents = {f.name: f.extent for f in loops}
    indices = tuple(simplify(i, extents) for i in stmt.indices)
    return tuple(loops), Store(stmt.buffer, indices, simplify_loads(stmt.value, extents))


class _Matcher:
    """Compares a pattern with code whose loops are given in the pattern's order."""

    def __init__(self, pattern: tuple[For, ...], actual: tuple[For, ...]) -> None:
        self.pairs = tuple(zip(pattern, actual, strict=True))
        self.names: dict[str, Expr] = {p.name: Var(a.name) for p, a in self.pairs}
        self.inside = {a.name for a in actual}
        self.sizes: dict[str, int] = {}
        self.operands: dict[str, str] = {}

    def run(self, pattern: Store, actual: Store) -> Match | None:
        """The match, if extents, target and value all correspond."""
        same = all(self._extent(p.extent, a.extent) for p, a in self.pairs)
        if not same or not self._expr(pattern.target, actual.target):
            return None
        if not self._expr(pattern.value, actual.value):
            return None
        return Match(tuple(self.operands.items()), tuple(self.sizes.items()))

    def _extent(self, pattern: Expr, actual: Expr) -> bool:
        count = as_int(actual)
        if count is None or not isinstance(pattern, Var):
            return pattern is actual
        return self.sizes.setdefault(pattern.name, count) == count

    def _expr(self, pattern: Expr, actual: Expr) -> bool:
        if type(pattern) is not type(actual) or pattern.dtype != actual.dtype:
            return False
        match pattern, actual:
            case Load(), Load():
                return self._load(pattern, actual)
            case Binary(), Binary():
                return pattern.op == actual.op and self._operands(pattern, actual)
            case Cast(_, a), Cast(_, b):
                return self._expr(a, b)
        return isinstance(pattern, Const) and pattern is actual

    def _operands(self, pattern: Binary, actual: Binary) -> bool:
        before = dict(self.operands)
        for a, b in _orders(actual):
            if self._expr(pattern.a, a) and self._expr(pattern.b, b):
                return True
            self.operands = dict(before)
        return False

    def _load(self, pattern: Load, actual: Load) -> bool:
        if pattern.mask is not None or actual.mask is not None:
            return False
        taken = {b: a for a, b in self.operands.items()}
        if self.operands.get(pattern.buffer, actual.buffer) != actual.buffer:
            return False
        if taken.get(actual.buffer, pattern.buffer) != pattern.buffer:
            return False
        self.operands[pattern.buffer] = actual.buffer
        wanted = [to_affine(substitute(i, self.names)) for i in pattern.indices]
        moving = [self._moving(i) for i in actual.indices]
        return wanted == [m for m in moving if m is None or m.coeffs]

    def _moving(self, index: Expr) -> Affine | None:
        """The part of an index that moves with the loops; `None` where it is not a sum."""
        form = to_affine(index)
        moving = {a: c for a, c in form.coeffs.items() if free_vars(a) & self.inside}
        return Affine(moving, 0) if all(isinstance(a, Var) for a in moving) else None


def _orders(e: Binary) -> Iterator[tuple[Expr, Expr]]:
    yield e.a, e.b
    if e.op in _COMMUTATIVE:
        yield e.b, e.a
