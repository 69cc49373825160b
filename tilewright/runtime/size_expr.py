"""The value of a size that is written as a formula in other sizes: `N * 64 + max(S, 2) // 2`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _truncated,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_COMPARE: dict[type[ast.cmpop], Callable[[int, int], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
}
_CALLS: dict[str, Callable[..., int]] = {
    "min": min,
    "max": max,
    "rem": lambda a, b: a - b * _truncated(a, b),
    "select": lambda condition, a, b: a if condition else b,
}


def formula_value(text: str, sizes: Mapping[str, int]) -> int | None:
    """What `text` is at these sizes; None where it says more than this module understands."""
    try:
        return _value(ast.parse(text, mode="eval").body, sizes)
    except (SyntaxError, LookupError, ZeroDivisionError):
        return None


def _value(node: ast.expr, sizes: Mapping[str, int]) -> int:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return sizes[name]
        case ast.BinOp(left=left, op=op, right=right):
            return _BINARY[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _COMPARE[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, sizes)
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return _CALLS[name](*(_value(a, sizes) for a in arguments))
    raise LookupError(type(node).__name__)
