from __future__ import annotations

import numpy as np

from tests.finalize.math.jit_expression import jit
from tests.for_each import for_each
from tilewright.arith.expr import Expr, Var
from tilewright.core.dtypes import F32, F64
from tilewright.finalize.math.primitive import (
    bits_of,
    clamp,
    fma,
    format_of,
    horner2,
    literal,
    polynomial,
    product,
    where_nan,
)

X = Var("x", F32)


def run(e: Expr, *values: float) -> list[float]:
    return jit(e, [("x", F32)])(np.array(values, np.float32)).tolist()


def test_literals_are_rounded_to_their_dtype() -> None:
    assert literal(0.1, F32).value == float(np.float32(0.1))
    assert literal(0.1, F64).value == 0.1


@for_each(("dtype", "bits"), [(F32, 0x3F800000), (F64, 0x3FF0000000000000)])
def test_bits_of_one(dtype: object, bits: int) -> None:
    assert bits_of(1.0, format_of(Var("x", dtype))) == bits  # type: ignore[arg-type]


def test_polynomial_has_its_highest_power_first() -> None:
    assert run(polynomial(X, (2.0, 3.0, 4.0)), 0.0, 1.0, -2.0) == [4.0, 9.0, 6.0]


@for_each("count", range(1, 8))
def test_pairs_of_terms_are_the_same_polynomial(count: int) -> None:
    coefficients = (3.0, -2.0, 5.0, 1.0, 4.0, 1.0, 7.0)[-count:]
    points = (0.0, 1.0, -2.0, 3.0)
    expected = [float(np.polyval(coefficients, x)) for x in points]
    found = horner2(X, coefficients)
    assert (run(found, *points) if count > 1 else [found.value] * 4) == expected


def test_clamp_keeps_nan() -> None:
    result = run(clamp(X, -1.0, 2.0), -5.0, 0.5, np.inf, np.nan)
    assert result[:3] == [-1.0, 0.5, 2.0]
    assert np.isnan(result[3])


def test_where_nan() -> None:
    result = run(where_nan(X < 0.0, X), -1.0, 1.0)
    assert np.isnan(result[0])
    assert result[1] == 1.0


def test_error_of_a_product_is_counted_once() -> None:
    x = 1 + 2.0**-12
    rounded = product(X, X)
    assert run((rounded - 1.0) + fma(X, X, -rounded), x) == [x * x - 1.0]
