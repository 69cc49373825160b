"""Dimensions that an operator requires equal: proved, refuted, or checked when the model runs.

    with assumptions() as found:
        size = same_size("add", n, m)        # the simpler of the two
    found                                    # {n == m: "add: sizes n and m differ"}

Inside `assumptions`, what can neither be proved nor refuted is collected, so that a graph under
construction gets it as a check. Outside, types are inferred again for nodes whose checks exist.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from tilewright.arith.expr import FALSE, TRUE, Const, Expr, Var, const
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import free_vars, subexpressions, substitute

# What the names of sizes begin with that are known only when the model runs. They are numbered in
# the order in which they become known, and no dimension of an input is called so.
DATA_DEPENDENT = "_dyn_"

_found: ContextVar[dict[Expr, str] | None] = ContextVar("found", default=None)


@contextmanager
def assumptions() -> Iterator[dict[Expr, str]]:
    """The conditions that operators assume meanwhile, each with what to say where it fails."""
    found: dict[Expr, str] = {}
    token = _found.set(found)
    try:
        yield found
    finally:
        _found.reset(token)


def assume(condition: Expr, message: str) -> bool:
    """Whether a condition may hold; it is noted unless it certainly does."""
    found = _found.get()
    if found is None:
        return condition is not FALSE
    condition = simplify(condition)
    if condition is not TRUE and condition is not FALSE:
        found.setdefault(condition, message)
    return condition is not FALSE


def divides(op: str, step: int, size: Expr) -> bool:
    """Whether a size is a multiple of `step`, or may turn out to be."""
    if step < 1:
        return False
    rest = simplify(simplify(size % const(step)).eq(const(0)))
    return assume(rest, f"{op}: {step} does not divide {size}")


def has_elements(op: str, size: Expr, taken: Sequence[Expr] = ()) -> bool:
    """Whether a dimension of `size` has elements, or may turn out to.

    None are needed where one of the sizes `taken`, of what is made of them, is 0.
    """
    some = const(0) < size
    for count in taken:
        if isinstance(size, Var) and substitute(count, {size.name: const(0)}) is const(0):
            return True
        some = some | count.eq(const(0))
    return assume(simplify(some), f"{op}: a dimension of size {size} has no elements to take")


def same_size(op: str, a: Expr, b: Expr) -> Expr | None:
    """The size that both are, in the simpler spelling; `None` if they certainly differ."""
    if a is b:
        return a
    if not assume(a.eq(b), f"{op}: sizes {a} and {b} differ"):
        return None
    return simpler(a, b)


def same_shape(op: str, a: Sequence[Expr], b: Sequence[Expr]) -> bool:
    """Whether two shapes are the same, or may turn out to be."""
    return len(a) == len(b) and all(
        same_size(op, x, y) is not None for x, y in zip(a, b, strict=True)
    )


def simpler(a: Expr, b: Expr) -> Expr:
    """Of two equal sizes the one that is easier to compute with; the first of equals."""
    return b if _weight(b) < _weight(a) else a


def data_dependent_dim(number: int) -> str:
    """The name of a size that is known only when the model runs."""
    return f"{DATA_DEPENDENT}{number}"


def definition_order(e: Expr) -> int:
    """When a size is known: 0 from the start, else with which data-dependent one."""
    numbers = (name for name in free_vars(e) if name.startswith(DATA_DEPENDENT))
    return max((1 + int(name.removeprefix(DATA_DEPENDENT)) for name in numbers), default=0)


def _weight(e: Expr) -> int:
    if isinstance(e, Const):
        return 0
    return 1 if isinstance(e, Var) else 1 + sum(1 for _ in subexpressions(e))
