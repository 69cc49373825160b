"""What each scalar operator means, on NumPy arrays: the one table behind all interpreters.

Integers wrap. Integer division by zero gives zero. Floating-point operators round once; `min` and
`max` take -0.0 to be less than 0.0 and give NaN where an operand is NaN; functions are computed in
`f64` and rounded to the dtype. Callers silence NumPy's warnings with `quiet()`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from tilewright.arith.dtype_limits import highest, lowest
from tilewright.core.dtypes import BOOL, F64, I64, SMALL_INTEGERS, DType

Array = np.ndarray[Any, Any]
Value = Any  # a NumPy scalar or array
Operator = Callable[[Value, Value], Value]
_SMALL_INTEGERS = [d.numpy for d in SMALL_INTEGERS]


def quiet() -> np.errstate:
    """A context in which NumPy does not warn of overflow, division by zero and the like."""
    return np.errstate(all="ignore")


def _is_integer(a: Value) -> bool:
    return np.asarray(a).dtype.kind in "iu"


def _div(a: Value, b: Value) -> Value:
    if not _is_integer(a):
        return a / b
    quotient, rest = np.floor_divide(a, b), np.remainder(a, b)
    # Rounded toward minus infinity: one too low where the quotient is negative and not whole.
    return quotient + ((rest != 0) & ((a < 0) != (b < 0))).astype(quotient.dtype)


def _shift(shift: Operator) -> Operator:
    """Shifts by the width or more are what repeated shifts by one give."""

    def apply(a: Value, b: Value) -> Value:
        dtype = np.asarray(a).dtype
        far = np.asarray(b).astype(np.uint64) >= dtype.itemsize * 8  # also where it is negative
        negative = (a < 0) & (shift is np.right_shift)
        inside = shift(a, np.where(far, 0, b).astype(dtype))
        return np.where(far, np.where(negative, -1, 0).astype(dtype), inside)

    return apply


def _minimum(a: Value, b: Value) -> Value:
    least = np.minimum(a, b)
    if np.asarray(least).dtype.kind in "biu" or (least != 0).all():
        return least
    return np.where((least == 0) & (a == b), -(-a - b), least)


def _maximum(a: Value, b: Value) -> Value:
    greatest = np.maximum(a, b)
    if np.asarray(greatest).dtype.kind in "biu" or (greatest != 0).all():
        return greatest
    return np.where((greatest == 0) & (a == b), a + b, greatest)


BINARY_OPS: dict[str, Operator] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": lambda a, b: a & b if np.asarray(a).dtype.kind == "b" else np.multiply(a, b),
    "div": _div,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "rem": np.fmod,
    "min": _minimum,
    "max": _maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": _shift(np.left_shift),
    "shr": _shift(np.right_shift),
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
}

UNARY_OPS: dict[str, Callable[[Value], Value]] = {
    "neg": np.negative,
    "not": np.invert,
}


def cast_value(a: Value, dtype: DType) -> Value:
    """`a` converted: float to integer truncates and saturates (NaN is 0), integers wrap."""
    a = np.asarray(a)
    if dtype == BOOL:
        return a != 0
    if a.dtype in _SMALL_INTEGERS:
        a = a.astype(np.int64)
    if dtype.is_storage and a.dtype.kind not in "biu":
        return _to_single(a).astype(dtype.numpy)
    if not dtype.is_integer or a.dtype.kind in "biu":
        return a.astype(dtype.numpy)
    least, greatest = (int(c.value) for c in (lowest(dtype), highest(dtype)))
    wide = np.trunc(a.astype(np.float64))
    low, high = wide <= least, wide >= greatest
    inside = np.where(np.isnan(wide) | low | high, 0.0, wide).astype(dtype.numpy)
    return np.where(low, least, np.where(high, greatest, inside)).astype(dtype.numpy)


def _to_single(a: Array) -> Array:
    """A float as f32; an f64 rounded to odd, so that rounding it again rounds only once."""
    nearest = np.asarray(a.astype(np.float32))
    if a.dtype != np.float64:
        return nearest
    back = nearest.astype(np.float64)
    down = (np.abs(back) > np.abs(a)).astype(np.uint32)
    odd = ((nearest.view(np.uint32) - down) | np.uint32(1)).view(np.float32)
    return np.where((back != a) & ~np.isnan(a), odd, nearest)


def bitcast_value(a: Value, dtype: DType) -> Value:
    """The same bits read as `dtype`."""
    return np.ascontiguousarray(a).view(dtype.numpy).reshape(np.shape(a))


_erf = np.frompyfunc(math.erf, 1, 1)
_erfc = np.frompyfunc(math.erfc, 1, 1)


def _float_result(f: Any) -> Callable[[Value], Value]:
    return lambda a: np.asarray(f(a)).astype(np.float64)


def _gelu(a: Value) -> Value:
    # The complement keeps all digits where 1 + erf would cancel; at minus infinity it is the limit.
    a = np.maximum(a, np.finfo(np.float64).min)
    return 0.5 * a * np.asarray(_erfc(-a / math.sqrt(2.0))).astype(np.float64)


def _sigmoid(a: Value) -> Value:
    return 1.0 / (1.0 + np.exp(-a))


# Computed in f64, then rounded.
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "round_even": np.rint,
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "exp_ftz": np.exp,
    "exp_nonpositive": np.exp,
    "exp2_ftz": np.exp2,
    "rcp_ftz": lambda a: 1.0 / a,
    "log": np.log,
    "log2": np.log2,
    "log1p": np.log1p,
    "rsqrt": lambda a: 1.0 / np.sqrt(a),
    "sigmoid": _sigmoid,
    "erf": _float_result(_erf),
    "gelu": _gelu,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "pow": np.power,
    "copysign": np.copysign,
    "atan2": np.arctan2,
}
# Exact in any dtype, or with a result that is no float.
_EXACT: dict[str, Callable[..., Value]] = {
    "abs": np.abs,
    "sign": np.sign,
    "isnan": np.isnan,
    "isinf": np.isinf,
}


def call_value(fn: str, dtype: DType, *args: Value) -> Value:
    """The function `fn` of `CALLS` with a result of `dtype`."""
    if fn in _EXACT:
        return np.asarray(_EXACT[fn](*args)).astype(dtype.numpy)
    if fn == "fma":
        return np.asarray(_fma(dtype, *args)).astype(dtype.numpy)
    if dtype.is_integer:
        return _integer_call(fn, dtype, *args)
    wide = (np.asarray(a).astype(np.float64) for a in args)
    return np.asarray(FUNCTIONS[fn](*wide)).astype(dtype.numpy)


def _integer_call(fn: str, dtype: DType, *args: Value) -> Value:
    if fn == "pow":
        return np.asarray(_int_pow(dtype)(*args)).astype(dtype.numpy)
    if fn in ("floor", "ceil", "trunc", "round_even"):
        return np.asarray(args[0])
    return cast_value(FUNCTIONS[fn](*(np.asarray(a).astype(np.float64) for a in args)), dtype)


def _int_pow(dtype: DType) -> Any:
    modulus = 1 << dtype.bits

    def power(a: int, b: int) -> int:
        if int(b) < 0:  # a fraction, truncated
            return 1 if a == 1 else (-1 if b % 2 else 1) if a == -1 else 0
        wrapped = pow(int(a), int(b), modulus)
        return wrapped - modulus if dtype.kind == "int" and wrapped >= modulus // 2 else wrapped

    return np.frompyfunc(power, 2, 1)


def _fma(dtype: DType, a: Value, b: Value, c: Value) -> Value:
    if dtype.is_integer:
        return a * b + c
    if dtype == F64:
        return _fma_f64(a, b, c)
    x, y, z = (np.asarray(v).astype(np.float64) for v in (a, b, c))
    return _to_odd_sum(x * y, z)  # the product of narrower floats is exact in f64


def _to_odd_sum(a: Array, b: Array) -> Array:
    """`a + b` rounded to odd, so that rounding it again to a narrower float rounds only once."""
    total = np.asarray(a + b)
    back = total - a
    error = (a - (total - back)) + (b - back)
    inexact = np.isfinite(total) & (error != 0) & (total.view(np.int64) & 1 == 0)
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where(inexact, np.nextafter(total, toward), total)


def _exact_fma(a: float, b: float, c: float) -> float:
    if not all(map(math.isfinite, (a, b, c))) or a == 0 or b == 0:
        return a * b + c
    total = Fraction(a) * Fraction(b) + Fraction(c)
    if total == 0:
        return a * b + c if c == 0 else 0.0
    try:
        return float(total)
    except OverflowError:
        return math.copysign(math.inf, 1 if total > 0 else -1)


_fma_f64 = np.frompyfunc(_exact_fma, 3, 1)

# Along axes: the NumPy function of each reduction.
REDUCE_OPS: dict[str, Callable[..., Value]] = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "any": np.any,
    "all": np.all,
}


def undefined(dtype: DType) -> Value:
    """What fresh memory holds in an interpreter: NaN, or a number nobody expects."""
    if dtype.is_float or dtype.kind == "complex":
        return np.array(np.nan).astype(dtype.numpy)[()]
    if dtype == BOOL:
        return np.True_
    # Large, but far enough from the ends of i64 that an index made of it cannot wrap round.
    return np.array(0x5AD5AD5AD5AD5AD5).astype(I64.numpy).astype(dtype.numpy)[()]
