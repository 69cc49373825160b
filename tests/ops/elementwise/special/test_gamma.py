from __future__ import annotations

import math

import mpmath
import numpy as np
from scipy import special

from tests.for_each import for_each
from tests.ops.elementwise.special.values import ALL, POSITIVE, compare
from tests.ops.gradient.check_rule import check_rule
from tests.ops.run_op import run_op
from tilewright.ops.elementwise.special.gamma import PolygammaAttrs

RNG = np.random.default_rng(1)


def test_the_logarithm_of_gamma() -> None:
    compare("lgamma", special.gammaln, ALL[ALL > -np.inf], rtol=2e-12)
    check_rule("lgamma", RNG.uniform(0.3, 9, 12))


def test_digamma() -> None:
    compare("polygamma", special.digamma, ALL, attrs=PolygammaAttrs(0), rtol=1e-12)
    check_rule("polygamma", RNG.uniform(0.3, 9, 12), attrs=PolygammaAttrs(0))


@for_each("n", [1, 2, 3, 7])
def test_derivatives(n: int) -> None:
    compare("polygamma", lambda x: special.polygamma(n, x), POSITIVE, attrs=PolygammaAttrs(n))
    check_rule("polygamma", RNG.uniform(1, 5, 6), attrs=PolygammaAttrs(n), rtol=1e-4)


def test_zeta() -> None:
    s, q = 1.01 + RNG.exponential(5, 60), RNG.exponential(9, 60) + 1e-3
    compare("zeta", special.zeta, s, q)
    check_rule("zeta", s[:6], q[:6] + 1, without=(0,), rtol=1e-4)


def test_zeta_below_zero() -> None:
    """As many terms as there are below, and the rest."""
    s, q = RNG.integers(2, 9, 30).astype(float), -RNG.exponential(8, 30)

    def one(s: float, q: float) -> float:
        below = math.ceil(-q)
        terms = [(mpmath.mpf(q) + k) ** -int(s) for k in range(below)]
        return float(sum(terms) + mpmath.zeta(int(s), mpmath.mpf(q) + below))

    np.testing.assert_allclose(run_op("zeta", s, q), list(map(one, s, q)), rtol=1e-12)


def test_where_zeta_is_no_number() -> None:
    s = np.array([1, 1, 0.5, 2, 2, 2.5, np.nan, 2, 1e30, 3])
    q = np.array([2, np.nan, 2, 0, -1, -1.5, 2, np.nan, 3, np.inf])
    right = [np.inf, np.inf, np.nan, np.inf, np.inf, np.nan, np.nan, np.nan, 0, 0]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run_op("zeta", s, q), right)
