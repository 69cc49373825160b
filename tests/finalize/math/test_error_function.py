from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np

from tests.finalize.math.accuracy import Array, arguments, check
from tilewright.core.dtypes import F32, F64

RANGES = [(-0.1, 0.1), (-1.0, 1.0), (-4.5, 4.5), (-15.0, 15.0), (-38.0, 10.0)]
# Where the errors of f32 results come nearest to the limit.
GELU_WORST = [(-0.1, 0.1), (-2.0, -1.5), (-3.0, -2.5), (-8.0, -6.5)]


def erf(x: Array) -> Array:
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def gelu(x: Array) -> Array:
    # The limit at minus infinity is zero, where the formula gives NaN.
    x = np.where(np.isneginf(x), -1e9, x)
    erfc = np.vectorize(math.erfc, otypes=[x.dtype])(-x / np.sqrt(x.dtype.type(2)))
    return x * erfc / 2


def exact_gelu(x: float) -> float:
    """By the Taylor series of `erf` with so many digits that cancellation leaves enough."""
    with localcontext() as context:
        context.prec = 800
        z = Decimal(float(x)) / Decimal(2).sqrt()
        term = total = z
        n = 0
        while abs(term) > Decimal(10) ** -700:
            n += 1
            term *= -z * z / n
            total += term / (2 * n + 1)
        pi = _pi()
        return float(Decimal(float(x)) / 2 * (1 + 2 * total / pi.sqrt()))


def _pi() -> Decimal:
    """Machin's formula."""

    def arccot(n: int) -> Decimal:
        total = term = Decimal(1) / n
        k = 1
        while abs(term) > Decimal(10) ** -790:
            term /= -n * n
            k += 2
            total += term / k
        return total

    return 4 * (4 * arccot(5) - arccot(239))


def test_erf_over_the_whole_range() -> None:
    check("erf", F32, erf, 2.0, arguments(F32, *RANGES))


def test_erf_f64_over_the_whole_range() -> None:
    # The reference is itself off by up to one.
    check("erf", F64, erf, 4.0, arguments(F64, *RANGES))


def test_gelu_over_the_whole_range() -> None:
    check("gelu", F32, gelu, 2.0, arguments(F32, *RANGES, *GELU_WORST))


def test_gelu_is_accurate_where_it_is_tiny() -> None:
    x = np.linspace(-14.5, -5, 100_000).astype(np.float32)
    check("gelu", F32, gelu, 2.0, x)
    assert (gelu(x.astype(np.float64)) > -1e-38).any()


def test_gelu_f64() -> None:
    # The reference is itself rounded.
    x = np.concatenate([np.linspace(-37.2, 5, 9), [-0.7, -1e-8, 1e-300, 0.3]])
    check("gelu", F64, np.vectorize(exact_gelu, otypes=[np.longdouble]), 2.5, x)
