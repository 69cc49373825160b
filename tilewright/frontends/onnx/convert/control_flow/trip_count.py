"""How many steps a Loop takes, as an expression over sizes.

    while begin and i < M and condition(i)

A condition that compares an expression over the number of the step with a size ends the loop after
a number of steps that is known in advance. What is left are conditions over data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilewright.arith.expr import (
    TRUE,
    Binary,
    Const,
    Expr,
    Var,
    as_int,
    ceildiv,
    const,
    maximum,
    minimum,
    select,
)
from tilewright.arith.simplify import prove, simplify
from tilewright.arith.walk import substitute
from tilewright.ops.graph_builder import GraphBuilder


def conjuncts(g: GraphBuilder, value: str) -> Iterator[str]:
    """The truth values that must all hold for `value` to hold."""
    producer = {name: n for n in g.nodes for name in n.outputs}
    pending = [value]
    while pending:
        name = pending.pop()
        n = producer.get(name)
        # what is known as a whole need not be taken apart
        if n is not None and n.op == "and" and g.symbolic_value(name) is None:
            pending += n.inputs
        else:
            yield name


def known_condition(g: GraphBuilder, value: str) -> Expr | None:
    """One truth value as an expression, if it is known."""
    found = g.symbolic_value(value)
    return None if found is None or found.size != 1 else simplify(found.reshape(-1)[0])


def margins(condition: Expr) -> list[Expr] | None:
    """What must be positive for a condition to hold, `None` if it says something else."""
    if condition is TRUE:
        return []
    if isinstance(condition, Const):
        return [const(0)]
    if not isinstance(condition, Binary):
        return None
    if condition.op == "and":
        parts = [margins(condition.a), margins(condition.b)]
        return None if None in parts else [e for part in parts for e in part or ()]
    found = {"lt": condition.b - condition.a, "gt": condition.a - condition.b}
    found |= {"le": condition.b - condition.a + 1, "ge": condition.a - condition.b + 1}
    return [simplify(found[condition.op])] if condition.op in found else None


def steps_while(positive: Expr, counter: str, begins: Sequence[Expr]) -> Expr | None:
    """The steps that a loop takes while an expression over the counter is positive after each.

    `None` if that cannot be said. `begins` are what must be positive for the first step.
    """
    at = [simplify(substitute(positive, {counter: const(i)})) for i in (-1, 0)]
    drop = as_int(simplify(at[0] - at[1])) or 0
    if drop <= 0 or simplify(at[1] - drop * Var(counter) - positive) is not const(0):
        return None
    if any(simplify(e - at[0]) is const(0) for e in begins):  # tested before the first step too
        return simplify(maximum(ceildiv(at[0], drop), 0))
    return simplify(maximum(ceildiv(at[1], drop), 0) + 1)


def least(bounds: Sequence[Expr]) -> Expr:
    """The least of some numbers of steps; one that is never less than another is left out."""
    found = bounds[0]
    for bound in bounds[1:]:
        if prove(bound <= found):
            found = bound
        elif not prove(found <= bound):
            found = simplify(minimum(found, bound))
    return found


def if_begun(count: Expr, begins: Sequence[Expr]) -> Expr:
    """The number of steps of a loop whose first step needs all of `begins` to be positive."""
    for positive in begins:
        if not prove(count <= maximum(positive, 0)):
            count = simplify(select(const(0) < positive, count, 0))
    return count
