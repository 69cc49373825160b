from __future__ import annotations

import numpy as np

from tests.finalize.math.accuracy import Array, all_magnitudes, check, special_values, ulp_error
from tests.finalize.math.jit_expression import jit
from tests.for_each import for_each
from tilewright.arith.expr import Var, call, const
from tilewright.core.dtypes import F32, F64, DType
from tilewright.finalize.math.expand import expand_calls
from tilewright.finalize.math.power import SPECIAL_EXPONENTS

LIMIT = {F32: 1.0, F64: 2.0}
N = 50_000


def bases() -> dict[str, Array]:
    rng = np.random.default_rng(0)
    return {
        "wide": np.exp(rng.uniform(-85, 85, N)),
        "around one": rng.uniform(0.5, 2, N),
        "close to one": 1 + np.exp(rng.uniform(-16, -1, N)) * rng.choice([-1, 1], N),
        "denormal": rng.uniform(1e-40, 1e-38, N),
    }


@for_each("dtype", [F32, F64], ids=str)
def test_special_values(dtype: DType) -> None:
    x, y = (g.ravel() for g in np.meshgrid(special_values(dtype), special_values(dtype)))
    check("pow", dtype, np.power, LIMIT[dtype], x, y)


@for_each("dtype", [F32, F64], ids=str)
@for_each("kind", bases())
def test_results_of_all_magnitudes(dtype: DType, kind: str) -> None:
    x = bases()[kind].astype(dtype.numpy)
    rng = np.random.default_rng(1)
    largest = 760 if dtype == F64 else 105
    log = np.log(x.astype(np.float64))
    y = rng.uniform(-largest, largest, N) / np.where(log == 0, 1, log)
    check("pow", dtype, np.power, LIMIT[dtype], x, y.astype(dtype.numpy))


@for_each("dtype", [F32, F64], ids=str)
def test_integer_powers_of_negative_numbers(dtype: DType) -> None:
    rng = np.random.default_rng(0)
    x = -rng.uniform(0, 20, N).astype(dtype.numpy)
    y = rng.integers(-40, 40, N).astype(dtype.numpy)
    check("pow", dtype, np.power, LIMIT[dtype], x, y)


@for_each("exponent", SPECIAL_EXPONENTS)
def test_exponents_without_logarithm(exponent: float) -> None:
    x = np.concatenate([special_values(F32), all_magnitudes(F32)])
    e = expand_calls(call("pow", Var("x", F32), const(exponent, F32)))
    powers = np.full(x.shape, exponent)  # NumPy takes a lone 0.5 for a square root
    with np.errstate(all="ignore"):
        got, want = jit(e, [("x", F32)])(x), np.power(x.astype(np.float64), powers)
        error = ulp_error(got, want)
    assert error.max() <= 2
    zero = (got == 0) & (want == 0)
    assert (np.signbit(got) == np.signbit(want))[zero].all()


@for_each("dtype", [F32, F64], ids=str)
def test_rsqrt(dtype: DType) -> None:
    x = np.concatenate([special_values(dtype), all_magnitudes(dtype)])
    check("rsqrt", dtype, lambda v: 1 / np.sqrt(v), 2.0, x)
