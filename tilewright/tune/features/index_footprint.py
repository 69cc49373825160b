"""The footprint of an index over the loops around it, for all levels of the nest at once.

    for i in serial(8) { for j in serial(4) { ... A[i * 4 + j] ... } }

    the index i * 4 + j:  width (31, 3, 0)   values (32, 4, 1)   step (4, 1)

Level n is what happens while the loops from the n-th inwards run and those outside stand still, so
there is one level more than there are loops. Divisions are taken to be aligned with the loops, as
tiles are; an index that depends on data may be anything. Numbers, not proofs: symbolic sizes are
taken to be typical, and what is guarded is taken to run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tilewright.arith.expr import Binary, Cast, Const, Expr, Load, Select, Unary, Var
from tilewright.arith.walk import operands
from tilewright.ir.types import TYPICAL_SIZE

# The width of what depends on data: wider than any dimension, which bounds it.
ANYWHERE = 1 << 40

Numbers = tuple[int, ...]


class IndexFootprint(NamedTuple):
    """An index: its value with all loops at 0, and how it varies; no numbers if it is constant.

    `width` is from the least to the greatest value, `values` how many different ones there are.
    """

    base: int
    width: Numbers = ()
    values: Numbers = ()
    step: Numbers = ()

    @property
    def greatest(self) -> int:
        """The greatest value."""
        return self.base + self.width[0] if self.width else self.base


Env = Mapping[str, IndexFootprint]


def of_loop(place: int, depth: int, extent: int) -> IndexFootprint:
    """The variable of the loop at `place` among `depth` loops."""
    inner = depth - place
    return IndexFootprint(
        0,
        (extent - 1,) * (place + 1) + (0,) * inner,
        (extent,) * (place + 1) + (1,) * inner,
        (0,) * place + (1,) + (0,) * (inner - 1),
    )


def footprint(e: Expr, env: Env, memo: dict[Expr, IndexFootprint]) -> IndexFootprint:
    """The footprint of `e`; variables that `env` does not have are sizes."""
    found = memo.get(e)
    if found is None:
        found = memo[e] = _FOOTPRINT.get(type(e), _anything)(e, env, memo)
    return found


def _var(e: Var, env: Env, memo: dict[Expr, IndexFootprint]) -> IndexFootprint:
    return env.get(e.name) or IndexFootprint(TYPICAL_SIZE)


def _binary(e: Binary, env: Env, memo: dict[Expr, IndexFootprint]) -> IndexFootprint:
    rule = _BINARY.get(e.op)
    a, b = footprint(e.a, env, memo), footprint(e.b, env, memo)
    return _mixed(a, b) if rule is None else rule(a, b)


def _unary(e: Unary, env: Env, memo: dict[Expr, IndexFootprint]) -> IndexFootprint:
    return _scaled(footprint(e.a, env, memo), -1)


def _anything(e: Expr, env: Env, memo: dict[Expr, IndexFootprint]) -> IndexFootprint:
    """A value that cannot be followed: it may change whenever its operands do."""
    found = IndexFootprint(0)
    for part in operands(e):
        found = _mixed(found, footprint(part, env, memo))
    return found


def _select(e: Select, env: Env, memo: dict[Expr, IndexFootprint]) -> IndexFootprint:
    a, b = footprint(e.a, env, memo), footprint(e.b, env, memo)
    return max(a, b, key=lambda one: one.width)


def _add(a: IndexFootprint, b: IndexFootprint) -> IndexFootprint:
    if not b.width:
        return IndexFootprint(a.base + b.base, a.width, a.values, a.step)
    if not a.width:
        return IndexFootprint(a.base + b.base, b.width, b.values, b.step)
    width = tuple([x + y for x, y in zip(a.width, b.width, strict=True)])
    return IndexFootprint(
        a.base + b.base,
        width,
        tuple([min(x * y, w + 1) for x, y, w in zip(a.values, b.values, width, strict=True)]),
        tuple([x + y for x, y in zip(a.step, b.step, strict=True)]),
    )


def _scaled(a: IndexFootprint, factor: int) -> IndexFootprint:
    if not a.width:
        return IndexFootprint(a.base * factor)
    if factor == 0:
        return IndexFootprint(0)
    size = abs(factor)
    return IndexFootprint(
        a.base * factor,
        tuple([w * size for w in a.width]),
        a.values,
        tuple([s * factor for s in a.step]),
    )


def _mul(a: IndexFootprint, b: IndexFootprint) -> IndexFootprint:
    if not b.width:
        return _scaled(a, b.base)
    return _mixed(a, b) if a.width else _scaled(b, a.base)


def _floordiv(a: IndexFootprint, b: IndexFootprint) -> IndexFootprint:
    by = abs(b.base)
    if b.width or by == 0:
        return _mixed(a, b)
    if not a.width:
        return IndexFootprint(a.base // by)
    width = tuple([w // by for w in a.width])
    return IndexFootprint(
        a.base // by,
        width,
        tuple([min(c, w + 1) for c, w in zip(a.values, width, strict=True)]),
        tuple([int(s / by) for s in a.step]),
    )


def _mod(a: IndexFootprint, b: IndexFootprint) -> IndexFootprint:
    by = abs(b.base)
    if b.width or by == 0:
        return _mixed(a, b)
    if not a.width:
        return IndexFootprint(a.base % by)
    return IndexFootprint(
        a.base % by,
        tuple([min(w, by - 1) for w in a.width]),
        tuple([min(c, by) for c in a.values]),
        tuple([s if abs(s) < by else s % by for s in a.step]),
    )


def _min(a: IndexFootprint, b: IndexFootprint) -> IndexFootprint:
    """Clamping to an edge: away from it, where most of the work is, it changes nothing."""
    if a.width and b.width:
        return max(a, b, key=lambda one: one.width)
    moving, still = (a, b) if a.width else (b, a)
    if not moving.width:
        return IndexFootprint(min(a.base, b.base))
    room = max(0, still.base - moving.base)
    width = tuple([min(w, room) for w in moving.width])
    values = tuple([min(c, w + 1) for c, w in zip(moving.values, width, strict=True)])
    return IndexFootprint(moving.base, width, values, moving.step)


def _max(a: IndexFootprint, b: IndexFootprint) -> IndexFootprint:
    if a.width and b.width:
        return max(a, b, key=lambda one: one.width)
    moving = a if a.width else b
    return IndexFootprint(max(a.base, b.base), *moving[1:])


def _mixed(a: IndexFootprint, b: IndexFootprint) -> IndexFootprint:
    """Anything that two values make together."""
    if not a.width and not b.width:
        return IndexFootprint(0)
    if not a.width or not b.width:
        moving = a if a.width else b
        values, step = moving.values, moving.step
    else:
        values = tuple([x * y for x, y in zip(a.values, b.values, strict=True)])
        step = tuple([abs(x) + abs(y) for x, y in zip(a.step, b.step, strict=True)])
    width = tuple([ANYWHERE if n > 1 else 0 for n in values])
    return IndexFootprint(0, width, values, tuple([ANYWHERE if s else 0 for s in step]))


_BINARY: dict[str, Callable[[IndexFootprint, IndexFootprint], IndexFootprint]] = {
    "add": _add,
    "sub": lambda a, b: _add(a, _scaled(b, -1)),
    "mul": _mul,
    "floordiv": _floordiv,
    "div": _floordiv,
    "mod": _mod,
    "rem": _mod,
    "min": _min,
    "max": _max,
}
_FOOTPRINT: dict[type, Callable[[Any, Env, dict[Expr, IndexFootprint]], IndexFootprint]] = {
    Const: lambda e, env, memo: IndexFootprint(int(e.value)),
    Var: _var,
    Binary: _binary,
    Unary: _unary,
    Cast: lambda e, env, memo: footprint(e.a, env, memo),
    Select: _select,
    Load: _anything,
}
