"""The tables of algebraic rules.

Index arithmetic is `i64`, and is assumed not to overflow: sizes, strides and positions in buffers
that exist stay far below 2**63. The `INDEX_*` tables hold under that assumption only. The `INT_*`
tables hold for integers of any width, also where they wrap, and `FLOAT` holds for IEEE arithmetic
bit by bit (but for which NaN): so there is no `x + 0.0`, which makes -0.0 a 0.0, and no `x * 0.0`.
On floats, `min` and `max` are IEEE's: they pass on NaN and put -0.0 below 0.0. A division of
integers by zero has no value, and a rule may give it any.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tilewright.arith.expr import wrap
from tilewright.arith.patterns import (
    call_of,
    cast_of,
    compute,
    const,
    fold,
    max_of,
    min_of,
    select_of,
    wild,
)
from tilewright.arith.ruleset import rules
from tilewright.core.dtypes import BF16, BOOL, F8E8M0, F16, F32, F64, I64, DType

x, y, z = wild("x y z")
p, q = wild("p q")
c, d = const("c d")


def is_index(dtype: DType) -> bool:
    """Whether arithmetic of this dtype counts as index arithmetic."""
    return dtype == I64


def is_int(dtype: DType) -> bool:
    """Whether it is an integer of any width."""
    return dtype.is_integer


def is_bool(dtype: DType) -> bool:
    """Whether it is the type of conditions."""
    return dtype == BOOL


def is_float(dtype: DType) -> bool:
    """Whether it is a floating-point type."""
    return dtype.is_float and not dtype.is_small


def is_total(dtype: DType) -> bool:
    """Whether every value equals itself: a NaN does not."""
    return not dtype.is_float and dtype.kind != "complex"


def is_any(dtype: DType) -> bool:
    """Every dtype."""
    return True


i, j = wild("i j", is_int)

INT_RING = rules(
    "int-ring", is_int,
    (x + c) + d >> x + fold(c + d),
    (x - c) + d >> x + fold(d - c),
    (c - x) + d >> fold(c + d) - x,
    (x + c) - d >> x + fold(c - d),
    (x - c) - d >> x - fold(c + d),
    (c - x) - d >> fold(c - d) - x,
    d - (x + c) >> fold(d - c) - x,
    d - (x - c) >> fold(d + c) - x,
    d - (c - x) >> x + fold(d - c),
    (x * c) * d >> x * fold(c * d),
    x - x >> 0,
    (x + y) - y >> x,
    (x - y) + y >> x,
    x - (x + y) >> -y,
    x - (x - y) >> y,
    x + (-y) >> x - y,
    x - (-y) >> x + y,
    (-x) * c >> x * fold(0 - c),
    x * c + x >> x * fold(c + 1),
    x * c - x >> x * fold(c - 1),
    x * c + x * d >> x * fold(c + d),
    x * c - x * d >> x * fold(c - d),
    -(-x) >> x,  # noqa: B002 - a double negation is what this is about
    -(x - y) >> y - x,
    ~(~x) >> x,
    (x & x) >> x,
    (x | x) >> x,
    (x ^ x) >> 0,
    (x & 0) >> 0,
    (x | 0) >> x,
    (x ^ 0) >> x,
)  # fmt: skip

INT_MINMAX = rules(
    "int-minmax", is_int,
    min_of(x, x) >> x,
    max_of(x, x) >> x,
    min_of(min_of(x, y), y) >> min_of(x, y),
    max_of(max_of(x, y), y) >> max_of(x, y),
    min_of(max_of(x, y), y) >> y,
    max_of(min_of(x, y), y) >> y,
    min_of(min_of(x, c), d) >> min_of(x, fold(min_of(c, d))),
    max_of(max_of(x, c), d) >> max_of(x, fold(max_of(c, d))),
    (min_of(max_of(x, c), d) >> d).when(lambda c, d: c >= d),
    (max_of(min_of(x, c), d) >> d).when(lambda c, d: c <= d),
)  # fmt: skip

INT_COMPARE = rules(
    "int-compare", is_total,
    (x < x) >> False,
    (x <= x) >> True,
    x.eq(x) >> True,
    x.ne(x) >> False,
)  # fmt: skip

INDEX_DIV = rules(
    "index-div", is_index,
    ((x // c) // d >> x // fold(c * d)).when(lambda c, d: c > 0 and d > 0),
    ((x * c) // d >> x * fold(c // d)).when(lambda c, d: d and c % d == 0),
    ((x * c) // d >> x // fold(d // c)).when(lambda c, d: c > 0 and d % c == 0),
    (x * y) // y >> x,
    (x * y + z) // y >> x + z // y,
    ((x * c + y) // d >> x * fold(c // d) + y // d).when(lambda c, d: d and c % d == 0),
    ((x + c) // d >> x // d + fold(c // d)).when(lambda c, d: d and c % d == 0),
    ((x % c) // d >> 0).when(lambda c, d: 0 < c <= d),
    x // x >> 1,
    x // 1 >> x,
)  # fmt: skip

INDEX_MOD = rules(
    "index-mod", is_index,
    x % 1 >> 0,
    x % x >> 0,
    ((x % c) % d >> x % d).when(lambda c, d: d and c % d == 0),
    ((x % c) % d >> x % c).when(lambda c, d: 0 < c <= d),
    ((x * c) % d >> 0).when(lambda c, d: d and c % d == 0),
    ((x * c + y) % d >> y % d).when(lambda c, d: d and c % d == 0),
    ((x + c) % d >> x % d).when(lambda c, d: d and c % d == 0),
    (x * y) % y >> 0,
    (x * y + z) % y >> z % y,
    (x // y) * y + x % y >> x,
    x - (x // y) * y >> x % y,
)  # fmt: skip

INDEX_MINMAX = rules(
    "index-minmax", is_index,
    (min_of(x + c, x) >> x).when(lambda c: c >= 0),
    (min_of(x + c, x) >> x + c).when(lambda c: c < 0),
    (max_of(x + c, x) >> x + c).when(lambda c: c >= 0),
    (max_of(x + c, x) >> x).when(lambda c: c < 0),
    min_of(x + c, x + d) >> x + fold(min_of(c, d)),
    max_of(x + c, x + d) >> x + fold(max_of(c, d)),
    (min_of(x * c, y * c) >> min_of(x, y) * c).when(lambda c: c > 0),
    (max_of(x * c, y * c) >> max_of(x, y) * c).when(lambda c: c > 0),
    (min_of(x * c, y * c) >> max_of(x, y) * c).when(lambda c: c < 0),
    (max_of(x * c, y * c) >> min_of(x, y) * c).when(lambda c: c < 0),
)  # fmt: skip

INDEX_COMPARE = rules(
    "index-compare", is_index,
    (x + c < d) >> (x < fold(d - c)),
    (c < x + d) >> (fold(c - d) < x),
    (x + c <= d) >> (x <= fold(d - c)),
    (c <= x + d) >> (fold(c - d) <= x),
    (x + c).eq(d) >> x.eq(fold(d - c)),
    (x + c).ne(d) >> x.ne(fold(d - c)),
    (x + y < x + z) >> (y < z),
    (x + y <= x + z) >> (y <= z),
    (x + y).eq(x + z) >> y.eq(z),
    (x + y).ne(x + z) >> y.ne(z),
    ((x < x + c) >> True).when(lambda c: c > 0),
    ((x < x + c) >> False).when(lambda c: c <= 0),
    ((x + c < x) >> True).when(lambda c: c < 0),
    ((x + c < x) >> False).when(lambda c: c >= 0),
    ((x <= x + c) >> True).when(lambda c: c >= 0),
    ((x <= x + c) >> False).when(lambda c: c < 0),
    ((x * c < y * c) >> (x < y)).when(lambda c: c > 0),
    ((x * c < y * c) >> (y < x)).when(lambda c: c < 0),
    ((x * c <= y * c) >> (x <= y)).when(lambda c: c > 0),
    ((x * c <= y * c) >> (y <= x)).when(lambda c: c < 0),
    ((x * c).eq(y * c) >> x.eq(y)).when(lambda c: c != 0),
    ((x * c).ne(y * c) >> x.ne(y)).when(lambda c: c != 0),
    ((x // c < d) >> (x < fold(d * c))).when(lambda c: c > 0),
    ((d <= x // c) >> (fold(d * c) <= x)).when(lambda c: c > 0),
)  # fmt: skip

LOGIC = rules(
    "logic", is_bool,
    (x & x) >> x,
    (x | x) >> x,
    (x ^ x) >> False,
    (x & (~x)) >> False,
    (x | (~x)) >> True,
    ~(~x) >> x,
    (x ^ True) >> ~x,
    (x ^ False) >> x,
    x.eq(True) >> x,
    x.eq(False) >> ~x,
    x.ne(True) >> ~x,
    x.ne(False) >> x,
    ((x & y) & y) >> (x & y),
    ((x | y) | y) >> (x | y),
    (x & (x | y)) >> x,
    (x | (x & y)) >> x,
    ~(i < j) >> (j <= i),
    ~(i <= j) >> (j < i),
    ~(x.eq(y)) >> x.ne(y),
    ~(x.ne(y)) >> x.eq(y),
    ((i < j) & (j < i)) >> False,
    ((i < j) & (j <= i)) >> False,
    ((i < j) | (j <= i)) >> True,
    ((i <= j) | (j <= i)) >> True,
)  # fmt: skip

SELECT = rules(
    "select", is_any,
    select_of(p, x, x) >> x,
    select_of(~p, x, y) >> select_of(p, y, x),
    select_of(p, select_of(p, x, y), z) >> select_of(p, x, z),
    select_of(p, x, select_of(p, y, z)) >> select_of(p, x, z),
    select_of(p, select_of(q, x, y), y) >> select_of(p & q, x, y),
    select_of(p, x, select_of(q, x, y)) >> select_of(p | q, x, y),
)  # fmt: skip

SELECT_BOOL = rules(
    "select-bool", is_bool,
    select_of(p, True, False) >> p,
    select_of(p, False, True) >> ~p,
    select_of(p, x, False) >> (p & x),
    select_of(p, True, x) >> (p | x),
)  # fmt: skip


def _has_exact_reciprocal(c: float) -> bool:
    """Whether `c` is a power of two whose reciprocal is no subnormal number, even in `f16`."""
    mantissa, exponent = math.frexp(c)
    return abs(mantissa) == 0.5 and abs(exponent) <= 13


def _in_dtype(operator: Callable[[Any, Any], Any]) -> Callable[[float, float, DType], float]:
    """The operator on two literals, rounded as the dtype does it."""

    def rounded(c: float, d: float, dtype: DType) -> float:
        number = dtype.numpy.type
        with np.errstate(all="ignore"):
            return float(operator(number(c), number(d)))

    return rounded


FLOAT = rules(
    "float", is_float,
    x * 1.0 >> x,
    x * -1.0 >> -x,
    x / 1.0 >> x,
    x / -1.0 >> -x,
    x - 0.0 >> x,
    x + -0.0 >> x,
    -(-x) >> x,  # noqa: B002 - a double negation is what this is about
    x - (-y) >> x + y,
    x + (-y) >> x - y,
    (-x) * (-y) >> x * y,
    (-x) / (-y) >> x / y,
    (-x) * c >> x * compute(lambda c: -c),
    (x / c >> x * compute(lambda c: 1 / c)).when(_has_exact_reciprocal),
    min_of(x, x) >> x,
    max_of(x, x) >> x,
    min_of(min_of(x, y), y) >> min_of(x, y),
    max_of(max_of(x, y), y) >> max_of(x, y),
    call_of("abs", call_of("abs", x)) >> call_of("abs", x),
    call_of("abs", -x) >> call_of("abs", x),
    c + d >> compute(_in_dtype(lambda a, b: a + b)),
    c - d >> compute(_in_dtype(lambda a, b: a - b)),
    c * d >> compute(_in_dtype(lambda a, b: a * b)),
    c / d >> compute(_in_dtype(lambda a, b: a / b)),
)  # fmt: skip

_MANTISSA = {F16: 11, BF16: 8, F32: 24, F64: 53}


def is_exact(source: DType, target: DType) -> bool:
    """Whether every value of `source` is one of `target`."""
    if target.is_float and target.is_small:
        return source == target
    if source in (target, BOOL):
        return True
    if source.is_float:
        wider = target.is_float and source.bits < target.bits
        return wider and (source, target) != (F8E8M0, F16)
    signed = source.kind == "int"
    if target.is_float:
        return source.is_integer and source.bits - signed <= _MANTISSA[target]
    if not (source.is_integer and target.is_integer) or (signed and target.kind == "uint"):
        return False
    return source.bits < target.bits or (source.bits == target.bits and source.kind == target.kind)


def passes_through(s: DType, m: DType, d: DType) -> bool:
    """Whether a value cast from `s` over `m` to `d` is the value cast from `s` to `d`.

    Floats saturate where integers wrap, so that an integer must not go through a float and back.
    """
    returns = s.is_integer and m.is_float and d.is_integer
    return m != BOOL and is_exact(s, m) and (not returns or is_exact(s, d))


CAST = rules(
    "cast", is_any,
    (cast_of("d", cast_of("m", x, "s"), "m") >> cast_of("d", x, "s")).when(passes_through),
    (cast_of("d", c, "s") >> compute(lambda c, d: wrap(int(c), d)))
    .when(lambda s, d: not s.is_float and d.is_integer),
    (cast_of("d", c, "s") >> compute(lambda c: c != 0))
    .when(lambda s, d: s.is_integer and d == BOOL),
)  # fmt: skip

# For integer elements and conditions of any kind, no overflow assumed away.
ELEMENT = INT_RING | INT_MINMAX | INT_COMPARE | LOGIC | SELECT | SELECT_BOOL | FLOAT | CAST
# For index expressions.
INDEX = ELEMENT | INDEX_DIV | INDEX_MOD | INDEX_MINMAX | INDEX_COMPARE
