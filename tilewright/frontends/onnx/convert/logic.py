"""Comparison, logic on truth values and bits, choice."""

from __future__ import annotations

from tilewright.frontends.onnx.context import Converter, OnnxNode, simple
from tilewright.frontends.onnx.legacy_broadcast import broadcasting
from tilewright.ops.elementwise.logic import IsInfAttrs, ShiftAttrs


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
    "Equal": broadcasting("equal"),
    "Less": broadcasting("less"),
    "LessOrEqual": simple("less_or_equal"),
    "Greater": broadcasting("greater"),
    "GreaterOrEqual": simple("greater_or_equal"),
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
