from __future__ import annotations

import numpy as np

from tests.finalize.math.accuracy import Array, arguments, check
from tests.finalize.math.jit_expression import jit
from tests.for_each import for_each
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32, F64, DType
from tilewright.finalize.math.exponential import exp_ftz, exp_nonpositive

RANGES = [(-1.0, 1.0), (-20.0, 20.0), (-110.0, 95.0), (-750.0, 715.0)]


def sigmoid(x: Array) -> Array:
    t = np.exp(-np.abs(x))
    return np.where(x < 0, t, 1) / (1 + t)


CASES = {
    "exp": (np.exp, 2.0),
    "exp2": (np.exp2, 2.0),
    "expm1": (np.expm1, 2.0),
    "sigmoid": (sigmoid, 2.0),
}


@for_each("dtype", [F32, F64], ids=str)
@for_each("fn", CASES)
def test_accuracy_over_the_whole_range(fn: str, dtype: DType) -> None:
    oracle, limit = CASES[fn]
    check(fn, dtype, oracle, limit, arguments(dtype, *RANGES))


@for_each("fn", ["exp", "exp2", "sigmoid"])
def test_denormal_results(fn: str) -> None:
    oracle, limit = CASES[fn]
    x = np.linspace(-152, -86, 100_000).astype(np.float32)
    check(fn, F32, oracle, limit, x)
    results = oracle(x.astype(np.float64))
    assert ((results > 0) & (results < np.finfo(np.float32).tiny)).sum() > 10_000


def test_shares_of_a_softmax() -> None:
    """Accurate down to the least normal number, then zero; a NaN stays."""
    for low in (-2.0, -87.3):
        check("exp_ftz", F32, np.exp, 2.0, np.linspace(low, 0, 300_001).astype(np.float32))
    check("exp_ftz", F64, np.exp, 2.0, np.linspace(-750, 0, 10_001))
    run = jit(exp_ftz(Var("x", F32)), [("x", F32)])
    x = np.array([-87.4, -104.0, -1e30, -np.inf, -0.0, np.nan], np.float32)
    np.testing.assert_array_equal(run(x), [0, 0, 0, 0, 1, np.nan])


def test_powers_below_one() -> None:
    """Accurate down to the least denormal number; a NaN stays."""
    for low in (-2.0, -87.3, -110.0):
        x = np.linspace(low, 0, 300_001).astype(np.float32)
        check("exp_nonpositive", F32, np.exp, 2.0, x)
    check("exp_nonpositive", F64, np.exp, 2.0, np.linspace(-750, 0, 10_001))
    run = jit(exp_nonpositive(Var("x", F32)), [("x", F32)])
    x = np.array([-104.0, -1e30, -np.inf, -0.0, 0.0, np.nan], np.float32)
    np.testing.assert_array_equal(run(x), [0, 0, 0, 1, 1, np.nan])


def test_sigmoid_where_adding_one_is_not_exact() -> None:
    """`exp(-x)` is 2**24 and 2**25 here; near zero two roundings add up."""
    for low, high in [(-18.0, -16.0), (-0.35, 0.0), (-1e-3, 0.0)]:
        x = np.linspace(low, high, 300_001).astype(np.float32)
        check("sigmoid", F32, sigmoid, 2.0, x)


def test_overflow_comes_where_it_should() -> None:
    check("exp", F32, np.exp, 2.0, np.linspace(88.7, 88.75, 5000).astype(np.float32))
    check("exp", F64, np.exp, 2.0, np.linspace(709.7, 709.8, 5000))
    check("expm1", F32, np.expm1, 2.0, np.linspace(88.7, 88.75, 5000).astype(np.float32))
