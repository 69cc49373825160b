"""Intervals of integers and their arithmetic; `None` is no bound on that side.

Division and remainder round toward minus infinity. Division by 0 is undefined, so a divisor
known to be at least 0 counts as at least 1.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import NamedTuple

from tilewright.core.dtypes import BOOL, DType


class Interval(NamedTuple):
    """All integers from `lo` to `hi`, both included."""

    lo: int | None
    hi: int | None

    def contains(self, value: int) -> bool:
        """Whether `value` lies in it."""
        return (self.lo is None or self.lo <= value) and (self.hi is None or value <= self.hi)

    def within(self, other: Interval) -> bool:
        """Whether all of it lies in `other`."""
        return (other.lo is None or (self.lo is not None and self.lo >= other.lo)) and (
            other.hi is None or (self.hi is not None and self.hi <= other.hi)
        )

    @property
    def point(self) -> int | None:
        """The one value it holds, None where it holds more."""
        return self.lo if self.lo == self.hi else None


UNBOUNDED = Interval(None, None)
NATURAL = Interval(0, None)
TRUTH = Interval(0, 1)


def of_dtype(dtype: DType) -> Interval:
    """The values a bool or an integer narrower than 64 bits can have; no bounds for the rest."""
    if dtype == BOOL:
        return TRUTH
    if not dtype.is_integer or dtype.bits > 32:
        return NATURAL if dtype.kind == "uint" else UNBOUNDED
    if dtype.kind == "uint":
        return Interval(0, (1 << dtype.bits) - 1)
    return Interval(-(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1)


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b


def add(a: Interval, b: Interval) -> Interval:
    """The interval of `x + y`."""
    return Interval(_sum(a.lo, b.lo), _sum(a.hi, b.hi))


def negate(a: Interval) -> Interval:
    """The interval of `-x`."""
    return Interval(None if a.hi is None else -a.hi, None if a.lo is None else -a.lo)


def subtract(a: Interval, b: Interval) -> Interval:
    """The interval of `x - y`."""
    return add(a, negate(b))


def scale(a: Interval, factor: int) -> Interval:
    """The interval of `x * factor`."""
    if factor == 0:
        return Interval(0, 0)
    lo = None if a.lo is None else a.lo * factor
    hi = None if a.hi is None else a.hi * factor
    return Interval(lo, hi) if factor > 0 else Interval(hi, lo)


def _finite(value: float) -> int | None:
    return None if value in (inf, -inf) else int(value)


def _limits(a: Interval) -> tuple[float, float]:
    return -inf if a.lo is None else a.lo, inf if a.hi is None else a.hi


def multiply(a: Interval, b: Interval) -> Interval:
    """The interval of `x * y`."""
    # Integers stay exact: a float enters only as an infinity, which absorbs.
    corners = [0 if 0 in (x, y) else x * y for x in _limits(a) for y in _limits(b)]
    return Interval(_finite(min(corners)), _finite(max(corners)))


def floordiv(a: Interval, b: Interval) -> Interval:
    """The interval of `x // y`."""
    if b.hi is not None and b.hi < 0:
        return floordiv(negate(a), negate(b))
    if b.lo is None or b.lo < 0:
        return UNBOUNDED
    least = max(b.lo, 1)
    lo = _quotient(a.lo, least, b.hi) if a.lo is not None else None
    hi = _quotient(a.hi, b.hi, least) if a.hi is not None else None
    return Interval(lo, hi)


def _quotient(value: int, if_negative: int | None, if_positive: int | None) -> int:
    divisor = if_negative if value < 0 else if_positive
    if divisor is None:
        return -1 if value < 0 else 0
    return value // max(divisor, 1)


def modulo(a: Interval, b: Interval) -> Interval:
    """The interval of `x % y`."""
    if b.hi is not None and b.hi < 0:
        return negate(modulo(negate(a), negate(b)))
    if b.lo is None or b.lo < 0:
        return UNBOUNDED
    quotient = floordiv(a, b).point if b.point else None
    if quotient is not None and b.lo:
        return Interval(_sum(a.lo, -quotient * b.lo), _sum(a.hi, -quotient * b.lo))
    if a.lo is None or a.lo < 0:
        return Interval(0, None if b.hi is None else max(b.hi - 1, 0))
    if a.hi is not None and a.hi < b.lo:
        return a
    highest = [limit for limit in (a.hi, None if b.hi is None else b.hi - 1) if limit is not None]
    return Interval(0, max(min(highest), 0) if highest else None)


def minimum(a: Interval, b: Interval) -> Interval:
    """The interval of `min(x, y)`."""
    (al, ah), (bl, bh) = _limits(a), _limits(b)
    return Interval(_finite(min(al, bl)), _finite(min(ah, bh)))


def maximum(a: Interval, b: Interval) -> Interval:
    """The interval of `max(x, y)`."""
    return negate(minimum(negate(a), negate(b)))


def join(a: Interval, b: Interval) -> Interval:
    """The smallest interval around both."""
    (al, ah), (bl, bh) = _limits(a), _limits(b)
    return Interval(_finite(min(al, bl)), _finite(max(ah, bh)))


def _same_sign(a: Interval, b: Interval) -> bool:
    return a.lo is not None and a.lo >= 0 and b.lo is not None and b.lo >= 0


def truncating_div(a: Interval, b: Interval) -> Interval:
    """The interval of C's `x / y`, known where neither is negative."""
    return floordiv(a, b) if _same_sign(a, b) else UNBOUNDED


def remainder(a: Interval, b: Interval) -> Interval:
    """The interval of C's `x % y`, known where neither is negative."""
    return modulo(a, b) if _same_sign(a, b) else UNBOUNDED


def bit_and(a: Interval, b: Interval) -> Interval:
    """The interval of `x & y`: no more than an operand that is not negative."""
    limits = [x.hi for x in (a, b) if x.lo is not None and x.lo >= 0]
    known = [hi for hi in limits if hi is not None]
    return Interval(0 if limits else None, min(known) if known else None)


def bit_or(a: Interval, b: Interval) -> Interval:
    """The interval of `x | y` and of `x ^ y`: no more bits than the operands have."""
    if not _same_sign(a, b):
        return UNBOUNDED
    if a.hi is None or b.hi is None:
        return NATURAL
    return Interval(0, (1 << max(a.hi, b.hi).bit_length()) - 1)


def shift_left(a: Interval, b: Interval) -> Interval:
    """The interval of `x << y`, known for a constant shift."""
    return UNBOUNDED if b.point is None or not 0 <= b.point < 64 else scale(a, 1 << b.point)


def shift_right(a: Interval, b: Interval) -> Interval:
    """The interval of `x >> y`, known for a constant shift."""
    if b.point is None or not 0 <= b.point < 64:
        return UNBOUNDED
    return floordiv(a, Interval(1 << b.point, 1 << b.point))


def less(a: Interval, b: Interval) -> Interval:
    """The truth of `x < y`."""
    if a.hi is not None and b.lo is not None and a.hi < b.lo:
        return Interval(1, 1)
    if a.lo is not None and b.hi is not None and a.lo >= b.hi:
        return Interval(0, 0)
    return TRUTH


def negation(a: Interval) -> Interval:
    """The truth of `!x`."""
    return subtract(Interval(1, 1), a)


def equal(a: Interval, b: Interval) -> Interval:
    """The truth of `x == y`."""
    if a.point is not None and a.point == b.point:
        return Interval(1, 1)
    apart = less(a, b).lo or less(b, a).lo
    return Interval(0, 0) if apart else TRUTH


BINARY: dict[str, Callable[[Interval, Interval], Interval]] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "floordiv": floordiv,
    "mod": modulo,
    "div": truncating_div,
    "rem": remainder,
    "min": minimum,
    "max": maximum,
    "and": bit_and,
    "or": bit_or,
    "xor": bit_or,
    "shl": shift_left,
    "shr": shift_right,
    "lt": less,
    "le": lambda a, b: negation(less(b, a)),
    "eq": equal,
    "ne": lambda a, b: negation(equal(a, b)),
}
