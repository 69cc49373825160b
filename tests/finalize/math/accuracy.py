"""How far machine results are from the truth, and the arguments to try.

The error is counted in ULP of the true result; of a denormal result that is the least denormal.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.finalize.math.jit_expression import jit
from tilewright.arith.expr import Var, call
from tilewright.arith.operators import CALLS
from tilewright.core.dtypes import F32, F64, DType
from tilewright.finalize.math.expand import expand_calls

Array = np.ndarray[Any, Any]
Oracle = Callable[..., Array]

WIDER = {F32: np.float64, F64: np.longdouble}
# Where `longdouble` is no wider than f64, the oracle itself may be off by one.
SLACK = {F32: 0.0, F64: 0.0 if np.finfo(np.longdouble).nmant > 52 else 1.0}

SPECIAL = [0.0, 1.0, 2.0, 0.5, 3.0, 2.5, 1e7 + 1, 1e30, 1e-30, 1e-40, np.inf, np.nan]


@functools.cache
def machine(fn: str, dtype: DType) -> Callable[..., Array]:
    """The function as machine code on arrays."""
    variables = [("x", dtype), ("y", dtype)][: CALLS[fn]]
    return jit(expand_calls(call(fn, *(Var(*v) for v in variables))), variables)


def special_values(dtype: DType) -> Array:
    """Zeros, ones, infinities, NaN, the ends of the denormal and of the whole range; both signs."""
    info, one = np.finfo(dtype.numpy), dtype.numpy.type(1)
    ends = [info.max, info.tiny, info.smallest_subnormal, np.nextafter(info.tiny, 0 * one)]
    near_one = [np.nextafter(one, 0 * one), np.nextafter(one, 2 * one)]
    values = np.array([*SPECIAL, *ends, *near_one], dtype.numpy)
    return np.concatenate([values, -values])


# A wider f64 is slow where it is emulated.
COUNT = {F32: 1 << 16, F64: 1 << 14}


def all_magnitudes(dtype: DType) -> Array:
    """Bit patterns evenly over all numbers of the dtype, NaN and infinities included."""
    bits, count = dtype.bits, COUNT[dtype]
    step = (1 << bits) // count + 1
    patterns = np.arange(count, dtype=np.uint64) * np.uint64(step)
    return patterns.astype(f"uint{bits}").view(dtype.numpy)


def arguments(dtype: DType, *ranges: tuple[float, float]) -> Array:
    """Special values, all magnitudes, and many numbers in the given ranges."""
    rng = np.random.default_rng(0)
    dense = [rng.uniform(low, high, COUNT[dtype] // 2) for low, high in ranges]
    parts = [special_values(dtype), all_magnitudes(dtype), *dense]
    return np.concatenate([p.astype(dtype.numpy) for p in parts])


def ulp_error(got: Array, want: Array) -> Array:
    """The distance of each result from the truth `want`, which has a wider type."""
    info = np.finfo(got.dtype)
    rounded = want.astype(got.dtype)
    same = (got == rounded) | (np.isnan(got) & np.isnan(rounded))
    _, exponent = np.frexp(np.where(np.isfinite(want), want, 1))
    ulp = np.ldexp(np.ones_like(want), np.maximum(exponent - 1, info.minexp) - info.nmant)
    error = np.abs(got.astype(want.dtype) - want) / ulp
    # Overflow may come one ULP early or late.
    at_end = np.minimum(np.abs(got), np.abs(rounded)) == info.max
    error = np.where(np.isfinite(got) & np.isfinite(rounded), error, np.where(at_end, 1, np.inf))
    return np.where(same, np.minimum(error, 0.5), error)


def check(fn: str, dtype: DType, oracle: Oracle, limit: float, *args: Array) -> None:
    """Compare with the oracle in the wider type: error, NaN, infinities, sign of zero."""
    with np.errstate(all="ignore"):
        got = machine(fn, dtype)(*args)
        want = np.asarray(oracle(*(a.astype(WIDER[dtype]) for a in args)))
        error = ulp_error(got, want)
    worst = int(np.argmax(error))
    where = tuple(a[worst] for a in args)
    limit += SLACK[dtype]
    assert error[worst] <= limit, f"{fn}{where} is {got[worst]}, not {want[worst]}: {error[worst]}"
    zero = (got == 0) & (want == 0)
    wrong_sign = zero & (np.signbit(got) != np.signbit(want))
    assert not wrong_sign.any(), f"{fn}{tuple(a[wrong_sign][0] for a in args)} has a wrong sign"
