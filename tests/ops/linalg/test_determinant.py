from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import Var
from tilewright.core.dtypes import F64, I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(9)


@for_each("shape", [(1, 1), (2, 2), (3, 5, 5), (2, 3, 8, 8), (0, 3, 3), (2, 0, 0)])
def test_random_matrices(shape: tuple[int, ...]) -> None:
    x = RNG.standard_normal(shape)
    np.testing.assert_allclose(run_op("determinant", x), np.linalg.det(x), rtol=1e-11)


def test_rows_that_must_be_swapped_and_singular_matrices() -> None:
    swapped = np.array([[0.0, 2.0], [3.0, 0.0]], "f4")
    zero_first = np.array([[0.0, 1, 2], [0, 0, 4], [0, 5, 6]], "f4")
    assert run_op("determinant", swapped) == -6
    assert run_op("determinant", zero_first) == 0
    assert run_op("determinant", np.zeros((4, 4), "f4")) == 0
    assert np.isnan(run_op("determinant", np.full((2, 2), np.nan, "f4")))
    assert np.isnan(run_op("determinant", np.array([[0, 1], [np.nan, 3]], "f4")))


def test_narrow_floats_are_eliminated_in_f32() -> None:
    x = RNG.standard_normal((5, 4, 4)).astype("f2")
    np.testing.assert_allclose(run_op("determinant", x), np.linalg.det(x.astype("f8")), rtol=2e-3)


def test_operands() -> None:
    infer = get_op("determinant").infer
    for wrong in (tensor(F64, 3), tensor(F64, 3, 4), tensor(I64, 3, 3)):
        with pytest.raises(TypeCheckError):
            infer(None, [wrong])
    assert infer(None, [tensor(F64, Var("B"), 3, 3)]) == tensor(F64, Var("B"))
