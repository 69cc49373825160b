"""Comparison, logic on truth values and bits, choice.

Early versions compare floats only, so that exporters cast counters and sizes to them. Numbers that
are known to be integers are compared as such: what they say about sizes is then known too.
"""

from __future__ import annotations

import numpy as np

from tilewright.arith.expr import as_int, const, maximum, minimum
from tilewright.core.dtypes import F32, F64, I64
from tilewright.frontends.onnx.context import Converter, OnnxContext, OnnxNode, simple
from tilewright.frontends.onnx.legacy_broadcast import broadcasting
from tilewright.ops.elementwise.logic import IsInfAttrs, ShiftAttrs

# Up to these every integer is a float of that type.
EXACT = {F32: 1 << 24, F64: 1 << 53}


def _comparison(op: str) -> Converter:
    """A comparison; of integers where both operands are integers that were cast."""
    compare_any = broadcasting(op)

    def convert(c: OnnxContext, n: OnnxNode) -> tuple[str, ...]:
        limit = EXACT.get(c.type(n.required(0)).dtype)
        if limit is None or c.type(n.required(1)).dtype not in EXACT:
            return compare_any(c, n)
        integers = [_as_integer(c, n, n.required(i)) for i in (0, 1)]
        found = [c.g.symbolic_value(v) for v in integers if v]
        known = [e.reshape(-1)[0] for e in found if e is not None]
        if len(known) < 2:
            return compare_any(c, n)
        # One operand within the limits is enough: the order of the rounded ones is the same.
        exact = (minimum(*known) < limit) & (const(-limit) < maximum(*known))
        c.g.add_check(exact, f"{n.op_type}: a number is no exact float", n.loc)
        return (c.add(n, op, *integers),)

    convert.__doc__ = f"The operator `{op}`."
    return convert


def _as_integer(c: OnnxContext, n: OnnxNode, value: str) -> str:
    """The known integer that a float is, "" if it is none."""
    if as_int(c.type(value).elements) != 1:
        return ""
    data = c.constant_of(value)
    if data is not None:
        whole = bool(np.all(np.abs(data) < EXACT[F64]) and np.all(data == np.floor(data)))
        return c.constant(data, I64) if whole else ""
    made = next((m for m in reversed(c.g.nodes) if value in m.outputs), None)
    if made is None or made.op != "cast" or c.g.symbolic_value(made.inputs[0]) is None:
        return ""
    return c.cast(n, made.inputs[0], I64)


def _shift(n: OnnxNode) -> ShiftAttrs:
    direction = n.str_attr("direction")
    if direction not in ("LEFT", "RIGHT"):
        raise n.invalid(f"direction is {direction!r}", "one of LEFT, RIGHT")
    return ShiftAttrs(direction == "LEFT")


def _is_inf(n: OnnxNode) -> IsInfAttrs:
    return IsInfAttrs(
        bool(n.int_attr("detect_positive", 1)), bool(n.int_attr("detect_negative", 1))
    )


CONVERTERS: dict[str, Converter] = {
    "Equal": _comparison("equal"),
    "Less": _comparison("less"),
    "LessOrEqual": _comparison("less_or_equal"),
    "Greater": _comparison("greater"),
    "GreaterOrEqual": _comparison("greater_or_equal"),
    "And": broadcasting("and"),
    "Or": broadcasting("or"),
    "Xor": broadcasting("xor"),
    "Not": simple("not"),
    "BitwiseAnd": simple("bitwise_and"),
    "BitwiseOr": simple("bitwise_or"),
    "BitwiseXor": simple("bitwise_xor"),
    "BitwiseNot": simple("bitwise_not"),
    "BitShift": simple("bit_shift", _shift),
    "IsNaN": simple("is_nan"),
    "IsInf": simple("is_inf", _is_inf),
    "Where": simple("where"),
}
