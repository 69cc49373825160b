"""Comparison, logic on truth values and bits, choice."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.arith.expr import Expr, binary, call, const, select, unary
from tilewright.core.dtypes import BOOL
from tilewright.core.node import node
from tilewright.ir.graph.nodes import Attrs
from tilewright.ir.types import TensorType
from tilewright.ops.elementwise.define import (
    Accepts,
    all_floats,
    anything,
    bools,
    decided,
    function,
    integers,
    known,
    numbers,
    row,
)
from tilewright.ops.op import Op, broadcast_shapes, fail, same_dtype
from tilewright.ops.traced_value import Value, where


@node
class IsInfAttrs(Attrs):
    """Which infinities count."""

    positive: bool = True
    negative: bool = True


@node
class ShiftAttrs(Attrs):
    """The direction."""

    left: bool


def _is_inf(a: IsInfAttrs, x: Expr) -> Expr:
    if a.positive and a.negative:
        return call("isinf", x)
    if not a.positive and not a.negative:
        return const(0, BOOL)
    return x.eq(const(float("inf") if a.positive else float("-inf"), x.dtype))


def _shift(a: ShiftAttrs, x: Expr, count: Expr) -> Expr:
    """All bits or more are shifted out one by one, which the hardware does its own way."""
    bits = const(x.dtype.bits, x.dtype)
    last = const(x.dtype.bits - 1, x.dtype)
    shifted = binary("shl" if a.left else "shr", x, select(count < bits, count, last))
    if x.dtype.kind == "int" and not a.left:
        return shifted
    return select(count < bits, shifted, const(0, x.dtype))


def _where_type(_: Attrs, ins: Sequence[TensorType]) -> TensorType:
    cond, a, b = ins
    if cond.dtype != BOOL:
        raise fail("where", f"the condition is {cond}, not bool")
    shape = broadcast_shapes("where", cond.shape, a.shape, b.shape)
    return TensorType(same_dtype("where", (a, b)), shape)


def _where_vjp(_: Attrs, ins: Sequence[Value], y: Value, dy: Value) -> tuple[None, Value, Value]:
    condition, zero = ins[0], dy.number(0)
    return None, where(condition, dy, zero), where(condition, zero, dy)


def _comparison(name: str, compare: Callable[[Expr, Expr], Expr], accepts: Accepts, doc: str) -> Op:
    return row(
        name,
        lambda _, a, b: compare(a, b),
        accepts,
        result=BOOL,
        propagate=known(lambda a, b: decided(compare(a, b))),
        doc=doc,
    )


def _connective(name: str, op: str, accepts: Accepts, doc: str) -> Op:
    return row(
        name,
        lambda _, a, b: binary(op, a, b),
        accepts,
        propagate=known(lambda a, b: binary(op, a, b)),
        doc=doc,
    )


OPS = (
    _comparison("equal", lambda a, b: a.eq(b), anything, "whether equal"),
    _comparison("less", lambda a, b: a < b, numbers, "whether a < b"),
    _comparison("less_or_equal", lambda a, b: a <= b, numbers, "whether a <= b"),
    _comparison("greater", lambda a, b: a > b, numbers, "whether a > b"),
    _comparison("greater_or_equal", lambda a, b: a >= b, numbers, "whether a >= b"),
    _connective("and", "and", bools, "whether both hold"),
    _connective("or", "or", bools, "whether one holds"),
    _connective("xor", "xor", bools, "whether exactly one holds"),
    _connective("bitwise_and", "and", integers, "the bits set in both"),
    _connective("bitwise_or", "or", integers, "the bits set in one"),
    _connective("bitwise_xor", "xor", integers, "the bits set in exactly one"),
    row(
        "not",
        lambda _, x: unary("not", x),
        bools,
        propagate=known(lambda e: unary("not", e)),
        doc="whether it does not hold",
    ),
    row("bitwise_not", lambda _, x: unary("not", x), integers, doc="every bit inverted"),
    row("bit_shift", _shift, integers, attrs=ShiftAttrs, flops=3, doc="bits moved left or right"),
    row("is_nan", function("isnan"), all_floats, result=BOOL, doc="whether not a number"),
    row("is_inf", _is_inf, all_floats, result=BOOL, attrs=IsInfAttrs, doc="whether infinite"),
    row(
        "where",
        lambda _, c, a, b: select(c, a, b),
        infer=_where_type,
        propagate=known(lambda c, a, b: select(c, a, b)),
        vjp=_where_vjp,
        doc="a where the condition holds, else b",
    ),
)
