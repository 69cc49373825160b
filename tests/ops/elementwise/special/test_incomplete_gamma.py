from __future__ import annotations

import numpy as np
from scipy import special

from tests.for_each import for_each
from tests.ops.elementwise.special.values import compare
from tests.ops.gradient.check_rule import check_rule
from tilewright.ops.elementwise.special.incomplete_gamma import IncompleteGammaAttrs

RNG = np.random.default_rng(5)
A = 10 ** RNG.uniform(-3, 4, 60)
X = np.concatenate([10 ** RNG.uniform(-3, 4, 20), A[20:] * RNG.uniform(0.7, 1.4, 40)])
# of zeros, infinities and negative numbers
ODD_A = np.array([0, 0, 1, np.inf, 1, np.inf, -1, 1, np.nan, 2])
ODD_X = np.array([0, 1, 0, 1, np.inf, np.inf, 1, -1, 1, np.nan])


@for_each("upper", [False, True])
def test_functions(upper: bool) -> None:
    right, attrs = (special.gammainc, special.gammaincc)[upper], IncompleteGammaAttrs(upper)
    compare("igamma", right, A, X, attrs=attrs, rtol=1e-9)
    compare("igamma", right, ODD_A, ODD_X, attrs=attrs)
    a, x = RNG.uniform(0.5, 9, 6), RNG.uniform(0.5, 9, 6)
    check_rule("igamma", a, x, attrs=attrs, without=(0,), rtol=1e-4)
