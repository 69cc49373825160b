from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from tests.for_each import for_each
from tests.ops.elementwise.special.values import ALL, compare
from tests.ops.gradient.check_rule import check_rule

RNG = np.random.default_rng(3)
KINDS: list[tuple[str, Callable[..., Any]]] = [
    ("bessel_j0", special.j0),
    ("bessel_j1", special.j1),
    ("bessel_y0", special.y0),
    ("bessel_y1", special.y1),
    ("spherical_bessel_j0", lambda x: special.spherical_jn(0, x)),
]


@for_each("op,right", KINDS)
def test_functions(op: str, right: Callable[..., Any]) -> None:
    compare(op, right, ALL, rtol=1e-12, atol=1e-13)


@for_each("op", [op for op, _ in KINDS])
def test_gradients(op: str) -> None:
    check_rule(op, RNG.uniform(1, 20, 9), rtol=1e-4)
