from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import special

from tests.for_each import for_each
from tests.frontends.torch.eager import check, integers, random

WIDE = random(40).to(torch.float64) * 6
UNIT = random(40).sigmoid().to(torch.float64)


@for_each("function", [torch.lgamma, torch.digamma, torch.erfc, special.erfcx, special.log_ndtr])
def test_gamma_and_error_functions(function: Callable[..., Any]) -> None:
    check(function, WIDE, rtol=1e-9)
    check(function, WIDE.float(), rtol=1e-4, atol=1e-5)
    check(function, integers(1, 9, 5), rtol=1e-5)


def test_inverses() -> None:
    check(lambda x: (torch.erfinv(x * 2 - 1), special.ndtri(x)), UNIT, rtol=1e-9)


@for_each("n", [0, 1, 2, 5])
def test_derivatives(n: int) -> None:
    check(lambda x: torch.polygamma(n, x), WIDE.abs() + 0.01, rtol=1e-7)


def test_functions_of_two() -> None:
    a, b = WIDE.abs() + 0.1, WIDE.flip(0).abs()
    check(lambda a, b: (torch.igamma(a, b), torch.igammac(a, b)), a, b, rtol=1e-7)
    check(special.zeta, a + 1, b + 0.1, rtol=1e-9)
    check(lambda b: (special.zeta(2.5, b), special.zeta(b + 2, 3)), b + 0.1, rtol=1e-9)


BESSEL = (
    *("bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "spherical_bessel_j0", "airy_ai"),
    *("i0", "i0e", "i1", "i1e", "modified_bessel_i0", "modified_bessel_i1"),
    *("modified_bessel_k0", "modified_bessel_k1"),
    *("scaled_modified_bessel_k0", "scaled_modified_bessel_k1"),
)


@for_each("name", BESSEL)
def test_bessel_functions(name: str) -> None:
    # torch itself is no better than this, in f64 too
    check(getattr(special, name), WIDE, rtol=1e-4, atol=1e-6)
    check(getattr(special, name), integers(1, 9, 5), rtol=1e-4, atol=1e-6)


@for_each("kind", ["t", "u", "v", "w"])
def test_chebyshev_polynomials(kind: str) -> None:
    x, n = random(30).to(torch.float64), integers(-1, 12, 30)
    for prefix in ("", "shifted_"):
        function = getattr(special, f"{prefix}chebyshev_polynomial_{kind}")
        check(lambda x, n, f=function: (f(x, n), f(x, 3), f(0.5, n)), x, n, rtol=1e-5, atol=1e-5)
