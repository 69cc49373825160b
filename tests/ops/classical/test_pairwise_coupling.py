from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.core.errors import TypeCheckError

RNG = np.random.default_rng(24)


def _pairs(p: np.ndarray) -> np.ndarray:
    """Probabilities of pairs that classes of probabilities `p` have exactly."""
    return p[:, :, None] / (p[:, :, None] + p[:, None, :]) * (1 - np.eye(p.shape[1]))


@for_each("classes", [1, 2, 3, 6])
def test_consistent_pairs_give_back_the_classes(classes: int) -> None:
    p = RNG.uniform(0.2, 1, (5, classes))
    p /= p.sum(1, keepdims=True)
    found = run_op("pairwise_coupling", _pairs(p))
    np.testing.assert_allclose(found.sum(1), np.ones(5), rtol=1e-12)
    np.testing.assert_allclose(found, p, atol=0.02)


def test_any_pairs_and_no_rows() -> None:
    r = np.triu(RNG.uniform(0, 1, (4, 3, 3)), 1)
    r += np.tril(1 - r.transpose(0, 2, 1), -1)
    found = run_op("pairwise_coupling", r)
    assert np.all(found > 0)
    np.testing.assert_allclose(found.sum(1), np.ones(4), rtol=1e-12)
    assert run_op("pairwise_coupling", r[:0]).shape == (0, 3)


def test_squares_only() -> None:
    with pytest.raises(TypeCheckError, match="not a square"):
        run_op("pairwise_coupling", np.zeros((2, 3, 4)))
