"""Walking and rebuilding expressions: substitution, free variables, loads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from tilewright.arith.checked_index import CheckedIndex
from tilewright.arith.expr import (
    TRUE,
    Binary,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Reduce,
    Select,
    Unary,
    Var,
    binary,
    cast,
    select,
    unary,
)
from tilewright.arith.memo import Memo
from tilewright.arith.vector import Lane, Ramp, Shuffle

Rewrite = Callable[[Expr], Expr]


def _load(e: Load, f: Rewrite) -> Expr:
    mask = None if e.mask is None else f(e.mask)
    if isinstance(mask, Const) and mask.value:
        mask = None
    return Load(e.buffer, tuple(f(i) for i in e.indices), e.dtype, mask)


def _binary(e: Binary, f: Rewrite) -> Expr:
    a, b = f(e.a), f(e.b)
    return e if a is e.a and b is e.b else binary(e.op, a, b)


# How to rebuild a node of each class from rewritten children, folding constants on the way.
_REBUILD: dict[type, Callable[..., Expr]] = {
    Const: lambda e, f: e,
    Var: lambda e, f: e,
    Binary: _binary,
    Unary: lambda e, f: unary(e.op, f(e.a)),
    Call: lambda e, f: Call(e.fn, tuple(f(a) for a in e.args), e.dtype),
    Cast: lambda e, f: cast(e.dtype, f(e.a)),
    Bitcast: lambda e, f: Bitcast(e.dtype, f(e.a)),
    Select: lambda e, f: select(f(e.cond), f(e.a), f(e.b)),
    Load: _load,
    Reduce: lambda e, f: Reduce(e.op, tuple((v, f(n)) for v, n in e.axes), f(e.body)),
    Ramp: lambda e, f: Ramp(f(e.base), e.stride, e.count),
    Broadcast: lambda e, f: Broadcast(f(e.a), e.count),
    Lane: lambda e, f: Lane(f(e.a), e.index),
    Shuffle: lambda e, f: Shuffle(f(e.a), f(e.b), e.picks),
    CheckedIndex: lambda e, f: CheckedIndex(f(e.index), f(e.low), f(e.size), e.site),
}

# The direct children of a node of each class.
_CHILDREN: dict[type, Callable[..., tuple[Expr, ...]]] = {
    Const: lambda e: (),
    Var: lambda e: (),
    Binary: lambda e: (e.a, e.b),
    Unary: lambda e: (e.a,),
    Call: lambda e: e.args,
    Cast: lambda e: (e.a,),
    Bitcast: lambda e: (e.a,),
    Select: lambda e: (e.cond, e.a, e.b),
    Load: lambda e: e.indices if e.mask is None else (*e.indices, e.mask),
    Reduce: lambda e: (e.body, *(extent for _, extent in e.axes)),
    Ramp: lambda e: (e.base,),
    Broadcast: lambda e: (e.a,),
    Lane: lambda e: (e.a,),
    Shuffle: lambda e: (e.a, e.b),
    CheckedIndex: lambda e: (e.index, e.low, e.size),
}


def operands(e: Expr) -> tuple[Expr, ...]:
    """The direct children of `e`, in order."""
    return _CHILDREN[type(e)](e)


def map_children(e: Expr, f: Rewrite) -> Expr:
    """`e` with `f` applied to each direct child; the same object where nothing changed."""
    return _REBUILD[type(e)](e, f)


def rewrite(
    e: Expr, f: Callable[[Expr], Expr | None], memo: dict[Expr, Expr] | None = None
) -> Expr:
    """Rebuild bottom-up; `f` gives a replacement for a rebuilt node, or `None` to keep it.

    `memo` caches results for other expressions with the same `f`.
    """
    known = {} if memo is None else memo

    def go(x: Expr) -> Expr:
        found = known.get(x)
        if found is None:
            rebuilt = map_children(x, go)
            replaced = f(rebuilt)
            found = known[x] = rebuilt if replaced is None else replaced
        return found

    return go(e)


def substitute(e: Expr, values: Mapping[str, Expr], memo: dict[Expr, Expr] | None = None) -> Expr:
    """`e` with its free variables replaced by name, constants folded.

    `memo` caches results for other expressions with the same values.
    """
    known = {} if memo is None else memo

    def go(x: Expr) -> Expr:
        if isinstance(x, Var):
            return values.get(x.name, x)
        found = known.get(x)
        if found is None:
            if free_vars(x).isdisjoint(values):
                found = x
            elif isinstance(x, Reduce):
                found = _substitute_reduce(x, values)
            else:
                found = map_children(x, go)
            known[x] = found
        return found

    return go(e)


def _substitute_reduce(e: Reduce, values: Mapping[str, Expr]) -> Expr:
    hidden = {v.name for v, _ in e.axes}
    inner = {name: value for name, value in values.items() if name not in hidden}
    axes = tuple((v, substitute(n, values)) for v, n in e.axes)
    return Reduce(e.op, axes, substitute(e.body, inner))


def subexpressions(e: Expr, seen: set[Expr] | None = None) -> Iterator[Expr]:
    """Every distinct node of `e`, parents before children.

    Nodes in `seen` are skipped with their subexpressions; visited nodes are added to it.
    """
    return _walk(e, set() if seen is None else seen, operands)


def _walk(e: Expr, seen: set[Expr], children: Callable[[Expr], Iterable[Expr]]) -> Iterator[Expr]:
    stack = [e]
    while stack:
        x = stack.pop()
        if x in seen:
            continue
        seen.add(x)
        yield x
        stack += children(x)


def free_vars(e: Expr) -> frozenset[str]:
    """Names of the variables that occur in `e`, reduction axes within their body excepted."""
    try:
        return e._free_vars
    except AttributeError:
        found = _find_free_vars(e)
        object.__setattr__(e, "_free_vars", found)
        return found


def _find_free_vars(e: Expr) -> frozenset[str]:
    if isinstance(e, Var):
        return frozenset((e.name,))
    if isinstance(e, Reduce):
        inner = free_vars(e.body).difference(v.name for v, _ in e.axes)
        return inner.union(*(free_vars(extent) for _, extent in e.axes))
    return frozenset().union(*map(free_vars, operands(e)))


def contains(e: Expr, kind: type[Expr]) -> bool:
    """Whether a node of a class occurs in `e`."""
    return _kinds(e) & _BITS[kind] != 0


_BITS = {kind: 1 << number for number, kind in enumerate(_CHILDREN)}


def _kinds(e: Expr) -> int:
    """The classes of the nodes of `e`, a bit each."""
    try:
        return e._kinds
    except AttributeError:
        found = _BITS[type(e)]
        for operand in _CHILDREN[type(e)](e):
            found |= _kinds(operand)
        object.__setattr__(e, "_kinds", found)
        return found


def loads(e: Expr) -> Iterator[Load]:
    """Every distinct load in `e`."""
    if not contains(e, Load):
        return iter(())
    found = _LOADS.get(e)
    return iter(found if found is not None else _LOADS.keep(e, tuple(_find_loads(e))))


def _find_loads(e: Expr) -> Iterator[Load]:
    def with_loads(x: Expr) -> Iterator[Expr]:
        return (operand for operand in operands(x) if contains(operand, Load))

    return (x for x in _walk(e, set(), with_loads) if isinstance(x, Load))


_LOADS: Memo[Expr, tuple[Load, ...]] = Memo()


def conjuncts(condition: Expr) -> tuple[Expr, ...]:
    """The parts of a conjunction."""
    if isinstance(condition, Binary) and condition.op == "and":
        return (*conjuncts(condition.a), *conjuncts(condition.b))
    return () if condition is TRUE else (condition,)
