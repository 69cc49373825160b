from __future__ import annotations

import numpy as np

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.ops.elementwise.special.chebyshev import KINDS, ChebyshevAttrs

RNG = np.random.default_rng(6)
X = np.concatenate([[1, -1, 0, 1, -1, 2, np.nan], RNG.uniform(-1, 1, 40), RNG.normal(size=20) * 2])
N = np.concatenate([[3, 3, 2, 0, 4, -1, 2], RNG.integers(0, 25, 60)]).astype(np.float64)


def by_recurrence(kind: str, x: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Each is 2 x times the one before, less the one before that."""
    before = np.ones_like(x)
    now = {"t": x, "u": 2 * x, "v": 2 * x - 1, "w": 2 * x + 1}[kind]
    found = np.where(n == 0, before, now)
    for degree in range(2, int(n.max()) + 1):
        before, now = now, 2 * x * now - before
        found = np.where(n == degree, now, found)
    return np.where(n < 0, 0, found)


@for_each("shifted", [False, True])
@for_each("kind", KINDS)
def test_kinds(kind: str, shifted: bool) -> None:
    found = run_op("chebyshev", X, N, attrs=ChebyshevAttrs(kind, shifted))
    right = by_recurrence(kind, 2 * X - 1 if shifted else X, N)
    np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-10)
