"""Conditions that the host computes from the model's inputs, without a kernel.

    %c: bool[] = equal(%rate, 16000)        →        input.2 == 16000
    %y = if(%c, %x) ...

`host_predicate` writes a boolean scalar as an expression over inputs of the model that are integer
or boolean scalars. Only comparisons and logical operators are taken: they mean the same whatever
the width of a number is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from tilewright.arith.expr import Expr, Var, as_int, const
from tilewright.core.dtypes import BOOL
from tilewright.ir.graph.nodes import Constant, Graph, Node
from tilewright.ir.types import TensorType, Type
from tilewright.ops.registry import get_op

Ask = Callable[[str], Expr | None]
"""A value as an expression, if it is one."""

PREDICATES = frozenset(
    ("equal", "less", "less_or_equal", "greater", "greater_or_equal", "and", "or", "not")
)
# Their result is their only operand, as far as one element goes.
COPIES = frozenset(("identity", "reshape"))


def host_scalar_inputs(graph: Graph) -> dict[str, Expr]:
    """The scalar inputs of a model that the host can read, each as a variable."""
    return {
        v.name: Var(host_scalar_name(number), v.type.dtype)
        for number, v in enumerate(graph.inputs)
        if _is_scalar(v.type) and isinstance(v.type, TensorType)
    }


def host_scalar_name(number: int) -> str:
    """The name of an input's value in expressions."""
    return f"input.{number}"


def host_predicate(
    value: str,
    given: Mapping[str, Expr],
    constants: Mapping[str, Constant],
    producers: Mapping[str, Node],
) -> Expr | None:
    """A value as an expression over `given` ones, by the constants and nodes that lead to it."""
    if value in given:
        return given[value]
    if value in constants:
        return _constant(constants[value])
    n = producers.get(value)
    ask = partial(host_predicate, given=given, constants=constants, producers=producers)
    return None if n is None else _made(n, ask)


def _made(n: Node, ask: Ask) -> Expr | None:
    if not _is_scalar(n.type):
        return None
    if n.op == "fused":
        return _in_group(n, ask)
    if n.op not in PREDICATES | COPIES:
        return None
    operands = [ask(i) for i in n.inputs[: 1 if n.op in COPIES else None]]
    found = [e for e in operands if e is not None]
    if len(found) < len(operands):
        return None
    if n.op in COPIES:
        return found[0]
    te = get_op(n.op).te
    assert isinstance(te, partial)
    formula = te.args[0]
    return formula(n.attrs, *found) if callable(formula) else None


def _in_group(n: Node, ask: Ask) -> Expr | None:
    """The result of a group, if it has one."""
    (group,) = n.regions
    if len(group.outputs) != 1:
        return None
    pairs = zip(group.inputs, (i for i in n.inputs if i), strict=True)
    given = {v.name: ask(name) for v, name in pairs}
    known = {name: e for name, e in given.items() if e is not None}
    producers = {o: inner for inner in group.nodes for o in inner.outputs}
    return host_predicate(group.outputs[0], known, group.constant_by_name, producers)


def _constant(c: Constant) -> Expr | None:
    if not _is_scalar(c.type):
        return None
    return const(c.data.reshape(-1)[0].item(), c.type.dtype)


def _is_scalar(t: Type) -> bool:
    if not isinstance(t, TensorType) or as_int(t.elements) != 1:
        return False
    return t.dtype == BOOL or (t.dtype.is_integer and not t.dtype.is_small)
