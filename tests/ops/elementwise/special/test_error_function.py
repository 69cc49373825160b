from __future__ import annotations

import numpy as np
from scipy import special

from tests.for_each import for_each
from tests.ops.elementwise.special.values import ALL, UNIT, compare
from tests.ops.gradient.check_rule import check_rule

RNG = np.random.default_rng(2)


def test_what_is_left() -> None:
    compare("erfc", special.erfc, ALL, rtol=1e-12)
    compare("erfcx", special.erfcx, ALL)


def test_inverses() -> None:
    compare("erfinv", special.erfinv, np.concatenate([UNIT, -UNIT, 1 - UNIT, [1.5, -2]]))
    compare("ndtri", special.ndtri, np.concatenate([UNIT, 1 - UNIT, [1.5, -2]]))


@for_each("op", ["erfc", "erfcx", "erfinv", "ndtri"])
def test_gradients(op: str) -> None:
    check_rule(op, RNG.uniform(0.1, 0.8, 9), rtol=1e-4)
