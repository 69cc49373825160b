from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule
from tests.ops.run_op import run_op
from tilewright.core.errors import TypeCheckError
from tilewright.ops.linalg.solve_triangular import SolveTriangularAttrs

RNG = np.random.default_rng(2)


@for_each("unit", [False, True])
@for_each("upper", [False, True])
def test_solutions(upper: bool, unit: bool) -> None:
    attrs = SolveTriangularAttrs(upper, unit)
    for batch, size, columns in (
        ((), 5, 3),
        ((2, 3), 7, 1),
        ((), 0, 2),
        ((0,), 3, 3),
        ((2,), 1, 4),
    ):
        a = RNG.normal(size=(*batch, size, size)) + 3 * np.eye(size)
        b = RNG.normal(size=(*batch, size, columns))
        found = run_op("solve_triangular", a, b, attrs=attrs)
        triangle = np.triu(a) if upper else np.tril(a)
        if unit:
            triangle = triangle - triangle * np.eye(size) + np.eye(size)
        np.testing.assert_allclose(triangle @ found, b, atol=1e-9)
    a, b = RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3), RNG.normal(size=(2, 3, 2))
    check_rule("solve_triangular", a, b, attrs=attrs, rtol=1e-4)


def test_what_does_not_fit() -> None:
    for a, b in (((3, 3), (4, 2)), ((3, 2), (3, 2)), ((2, 3, 3), (3, 3))):
        with pytest.raises(TypeCheckError):
            run_op("solve_triangular", np.ones(a), np.ones(b))
