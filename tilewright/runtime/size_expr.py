"""Sizes that only a run knows: expressions over symbolic sizes, and the one evaluator of them.

An expression is a number, the name of a size, or an operation on others:

    ["floordiv", ["add", "N", 255], 256]

The manifest also has some as text, `N * 64 + max(S, 2) // 2`; `parse` reads it.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

SizeExpr = int | str | list[Any]


def _truncated(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


OPERATIONS: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _truncated,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "rem": lambda a, b: a - b * _truncated(a, b),
    "min": min,
    "max": max,
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "neg": operator.neg,
    "not": operator.not_,
    "select": lambda condition, a, b: a if condition else b,
}
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
    ast.Eq: "eq",
    ast.NotEq: "ne",
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.USub: "neg",
}


def evaluate(size: SizeExpr, sizes: Mapping[str, int]) -> int:
    """The value of an expression where sizes have these values."""
    if isinstance(size, int):
        return size
    if isinstance(size, str):
        return sizes[size]
    operation, *operands = size
    return int(OPERATIONS[operation](*(evaluate(x, sizes) for x in operands)))


def evaluate_text(text: str, sizes: Mapping[str, int]) -> int | None:
    """The value of an expression given as text; `None` where it is not one, or has no value."""
    try:
        return evaluate(parse(text), sizes)
    except (SyntaxError, LookupError, ZeroDivisionError):
        return None


def parse(text: str) -> SizeExpr:
    """The expression that a text spells; a `LookupError` for what is none."""
    return _tree(ast.parse(text, mode="eval").body)


def _tree(node: ast.expr) -> SizeExpr:
    match node:
        case ast.Constant(value=int(number)):
            return number
        case ast.Name(id=name):
            return name
        case ast.BinOp(left=left, op=op, right=right):
            return [_OPERATORS[type(op)], _tree(left), _tree(right)]
        case ast.Compare(left=left, ops=[compare], comparators=[right]):
            return [_OPERATORS[type(compare)], _tree(left), _tree(right)]
        case ast.UnaryOp(op=sign, operand=operand):
            return [_OPERATORS[type(sign)], _tree(operand)]
        case ast.Call(func=ast.Name(id=name), args=arguments):
            return [name, *map(_tree, arguments)]
    raise LookupError(type(node).__name__)
