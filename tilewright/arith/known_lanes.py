"""The elements of vectors that are known at compile time: `ramp(0, 1, 4) // 2` is 0, 0, 1, 1.

Index vectors and masks of unrolled loops are such vectors.
"""

from __future__ import annotations

from collections.abc import Callable

from tilewright.arith.expr import Binary, Broadcast, Expr, as_int
from tilewright.arith.vector import Ramp

_OPERATORS: dict[str, Callable[[int, int], int]] = {
    "add": int.__add__,
    "sub": int.__sub__,
    "mul": int.__mul__,
    "floordiv": int.__floordiv__,
    "mod": int.__mod__,
    "min": min,
    "max": max,
    "lt": int.__lt__,
    "and": int.__and__,
}


def known_lanes(e: Expr) -> tuple[int, ...] | None:
    """The elements of a vector of integers or conditions, `None` if one is not known."""
    match e:
        case Broadcast(a, count):
            lanes = known_lanes(a)
            return None if lanes is None else lanes * count
        case Ramp(base, stride, count):
            start = as_int(base)
            return None if start is None else tuple(start + n * stride for n in range(count))
        case Binary(op, a, b) if op in _OPERATORS:
            return _combined(_OPERATORS[op], known_lanes(a), known_lanes(b), e.lanes)
    value = as_int(e)
    return None if value is None else (value,)


def _combined(
    operator: Callable[[int, int], int],
    a: tuple[int, ...] | None,
    b: tuple[int, ...] | None,
    lanes: int,
) -> tuple[int, ...] | None:
    """An operator applied lane by lane; a scalar operand is that of every lane."""
    if a is None or b is None or (operator in _DIVISIONS and 0 in b):
        return None
    return tuple(operator(a[n % len(a)], b[n % len(b)]) for n in range(lanes))


_DIVISIONS = (int.__floordiv__, int.__mod__)
