from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule
from tests.ops.run_op import run_op
from tilewright.core.errors import TypeCheckError

RNG = np.random.default_rng(0)


def positive(*shape: int) -> np.ndarray:
    """Positive definite matrices."""
    x = RNG.normal(size=shape)
    return x @ x.swapaxes(-1, -2) + np.eye(shape[-1])


@for_each("shape", [(1, 1), (5, 5), (2, 3, 7, 7), (0, 0), (3, 0, 0), (0, 3, 3)])
def test_factors(shape: tuple[int, ...]) -> None:
    x = positive(*shape)
    above = np.triu(RNG.normal(size=shape), 1)
    factor, info = run_op("cholesky", np.tril(x) + above)
    np.testing.assert_allclose(factor, np.linalg.cholesky(x), rtol=1e-10)
    assert not info.any()


def test_the_first_minor_that_is_not_positive() -> None:
    x = np.stack([np.diag([1.0, 2, -1, 3]), np.diag([0.0, 1, 1, 1]), np.diag([1.0, np.nan, 1, -1])])
    with np.errstate(all="ignore"):
        assert run_op("cholesky", x.astype(np.float32))[1].tolist() == [3, 1, 2]


def test_gradient() -> None:
    check_rule("cholesky", positive(2, 4, 4), rtol=1e-4)


def test_what_is_no_square_matrix() -> None:
    for x in (np.ones((2, 3)), np.ones(3), np.ones((2, 2), np.int64)):
        with pytest.raises(TypeCheckError):
            run_op("cholesky", x)
