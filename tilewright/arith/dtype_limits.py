"""The least and greatest literals of a type, and what reductions start from."""

from __future__ import annotations

import math
from collections.abc import Callable

from tilewright.arith.expr import TRUE, Const, const
from tilewright.core.dtypes import BOOL, DType


def lowest(dtype: DType) -> Const:
    """The least value of `dtype`: the neutral element of `max`."""
    if dtype.is_float:
        return const(-math.inf, dtype)
    return const(0 if dtype.kind != "int" else -(1 << (dtype.bits - 1)), dtype)


def highest(dtype: DType) -> Const:
    """The greatest value of `dtype`: the neutral element of `min`."""
    if dtype.is_float:
        return const(math.inf, dtype)
    if dtype == BOOL:
        return TRUE
    return const((1 << (dtype.bits - (dtype.kind == "int"))) - 1, dtype)


def neutral(reduction: str, dtype: DType) -> Const:
    """The value a reduction starts from."""
    table: dict[str, Callable[[DType], Const]] = {
        "sum": lambda d: const(0, d),
        "prod": lambda d: const(1, d),
        "max": lowest,
        "min": highest,
        "any": lambda d: const(0, d),
        "all": lambda d: const(1, d),
    }
    return table[reduction](dtype)


def neutral_of_parts(reduction: str, dtype: DType) -> Const:
    """The value that a part of a reduction starts from: of a sum of floats -0.0.

    Unlike 0.0 it leaves every term as it is, so that adding the first is no work. The sum of all
    parts starts with 0.0 and does not become -0.0 by this.
    """
    if reduction == "sum" and dtype.is_float:
        return const(-0.0, dtype)
    return neutral(reduction, dtype)
