"""Conditions that the host can tell from what the caller gives, without a kernel.

    %c: bool[] = equal(%rate, 16000)        →        input.2 == 16000
    %y = if(%c, %x) ...

`asked` writes a truth value as an expression over inputs of the model that are one whole number
or truth value each. Only comparisons and connectives are taken: they mean the same whatever the
width of a number is.
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

TAKEN = frozenset(
    ("equal", "less", "less_or_equal", "greater", "greater_or_equal", "and", "or", "not")
)
# Their result is their only operand, as far as one element goes.
SAME = frozenset(("identity", "reshape"))


def asked_inputs(graph: Graph) -> dict[str, Expr]:
    """The inputs of a model that the host may be asked about, each as a number with a name."""
    return {
        v.name: Var(asked_name(number), v.type.dtype)
        for number, v in enumerate(graph.inputs)
        if _is_one_number(v.type) and isinstance(v.type, TensorType)
    }


def asked_name(number: int) -> str:
    """What the value of an input is called in expressions."""
    return f"input.{number}"


def asked(
    value: str,
    given: Mapping[str, Expr],
    constants: Mapping[str, Constant],
    makers: Mapping[str, Node],
) -> Expr | None:
    """A value as an expression over `given` ones, by the constants and nodes that lead to it."""
    if value in given:
        return given[value]
    if value in constants:
        return _constant(constants[value])
    n = makers.get(value)
    ask = partial(asked, given=given, constants=constants, makers=makers)
    return None if n is None else _made(n, ask)


def _made(n: Node, ask: Ask) -> Expr | None:
    if not _is_one_number(n.type):
        return None
    if n.op == "fused":
        return _in_group(n, ask)
    if n.op not in TAKEN | SAME:
        return None
    operands = [ask(i) for i in n.inputs[: 1 if n.op in SAME else None]]
    found = [e for e in operands if e is not None]
    if len(found) < len(operands):
        return None
    if n.op in SAME:
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
    makers = {o: inner for inner in group.nodes for o in inner.outputs}
    return asked(group.outputs[0], known, group.constant_by_name, makers)


def _constant(c: Constant) -> Expr | None:
    if not _is_one_number(c.type):
        return None
    return const(c.data.reshape(-1)[0].item(), c.type.dtype)


def _is_one_number(t: Type) -> bool:
    if not isinstance(t, TensorType) or as_int(t.elements) != 1:
        return False
    return t.dtype == BOOL or (t.dtype.is_integer and not t.dtype.is_small)
