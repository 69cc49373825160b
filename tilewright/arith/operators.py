"""The operators, functions and reductions that expressions may have, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Number = int | float | bool


def _truncated(a: Number, b: Number) -> Number:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


COMPARISONS = ("lt", "le", "eq", "ne")
# The operators with their meaning on Python integers, used to fold constants.
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _truncated,
    "floordiv": lambda a, b: a // b,
    "mod": lambda a, b: a % b,
    "rem": lambda a, b: a - b * _truncated(a, b),
    "min": min,
    "max": max,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "shl": lambda a, b: a << b,
    "shr": lambda a, b: a >> b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
}
DIVISIONS = ("div", "floordiv", "mod", "rem")
SHIFTS = ("shl", "shr")

# Functions of one or more floats and their number of arguments; `trunc`, `floor`, `ceil`,
# `round_even`, `abs`, `sqrt`, `fma`, `copysign` map to instructions, the others are expanded.
CALLS: dict[str, int] = {
    **dict.fromkeys(
        ("abs", "sqrt", "floor", "ceil", "trunc", "round_even", "isnan", "isinf", "sign"), 1
    ),
    **dict.fromkeys(("exp", "exp2", "expm1", "log", "log2", "log1p", "rsqrt", "sigmoid", "erf"), 1),
    **dict.fromkeys(("sin", "cos", "tan", "asin", "acos", "atan", "gelu", "exp_ftz"), 1),
    **dict.fromkeys(("exp_nonpositive", "exp2_ftz", "rcp_ftz"), 1),
    **dict.fromkeys(("sinh", "cosh", "tanh", "asinh", "acosh", "atanh"), 1),
    **dict.fromkeys(("pow", "copysign", "atan2"), 2),
    "fma": 3,
}
# Those of them that take an instruction or two.
CHEAP_CALLS = ("abs", "floor", "ceil", "trunc", "round_even", "isnan", "isinf", "sign", "copysign")
# Those that do not become a polynomial of tens of instructions.
SHORT_CALLS = (*CHEAP_CALLS, "fma", "sqrt", "rsqrt")

# Reductions: the operator that combines, and the neutral element.
REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")
COMBINE = {"sum": "add", "prod": "mul", "max": "max", "min": "min", "any": "or", "all": "and"}
