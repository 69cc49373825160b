from __future__ import annotations

import pytest

from tilewright.arith.expr import Load, Var
from tilewright.core.dtypes import F32, I64
from tilewright.core.errors import TypeCheckError
from tilewright.ir.loop.nodes import Store
from tilewright.ir.types import tensor
from tilewright.ops.linalg.matrix_rows import Matrix, check_matrices


def test_elements_of_one_matrix_of_a_batch() -> None:
    b, i, j = Var("b"), Var("i"), Var("j")
    matrix = Matrix("x0", (b,), F32)
    assert matrix.at(i, j) is Load("x0", (b, i, j), F32)
    assert matrix.put(i, j, matrix.at(j, i)) == Store("x0", (b, i, j), matrix.at(j, i))


def test_what_is_no_matrix() -> None:
    check_matrices("lu", tensor(F32, 2, 3))
    for bad, square in (
        (tensor(F32, 2), False),
        (tensor(I64, 2, 2), False),
        (tensor(F32, 2, 3), True),
    ):
        with pytest.raises(TypeCheckError):
            check_matrices("lu", bad, square)
