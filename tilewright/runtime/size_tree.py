"""Sizes that only a run knows, as trees: a number, the name of a size, or an operation on others.

["floordiv", ["add", "N", 255], 256]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

Formula = int | str | list[Any]

OPERATIONS: dict[str, Callable[..., int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
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


def value_of(formula: Formula, sizes: Mapping[str, int]) -> int:
    """What a formula is where sizes have these values."""
    if isinstance(formula, int):
        return formula
    if isinstance(formula, str):
        return sizes[formula]
    operation, *operands = formula
    return int(OPERATIONS[operation](*(value_of(x, sizes) for x in operands)))
