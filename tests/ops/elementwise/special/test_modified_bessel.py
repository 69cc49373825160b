from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from tests.for_each import for_each
from tests.ops.elementwise.special.values import ALL, compare
from tests.ops.gradient.check_rule import check_rule
from tilewright.ops.elementwise.special.modified_bessel import ModifiedBesselAttrs

RNG = np.random.default_rng(4)
FIRST = ((special.i0, special.i0e), (special.i1, special.i1e))
SECOND = ((special.k0, special.k0e), (special.k1, special.k1e))


@for_each("order", [0, 1])
@for_each("scaled", [False, True])
@for_each("op,rights", [("modified_bessel_i", FIRST), ("modified_bessel_k", SECOND)])
def test_functions(op: str, rights: tuple[tuple[Any, ...], ...], scaled: bool, order: int) -> None:
    right: Callable[..., Any] = rights[order][scaled]
    attrs = ModifiedBesselAttrs(order, scaled)
    compare(op, right, ALL[np.abs(ALL) < 600], attrs=attrs)
    check_rule(op, RNG.uniform(0.5, 12, 9), attrs=attrs, rtol=1e-4)
