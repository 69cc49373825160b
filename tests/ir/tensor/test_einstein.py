from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.arith.expr import Expr, Var, as_expr
from tilewright.core.dtypes import F32
from tilewright.core.errors import ParseError, TypeCheckError
from tilewright.ir.tensor.einstein import einstein
from tilewright.ir.tensor.interp import run_program
from tilewright.ir.tensor.nodes import Tensor
from tilewright.ir.tensor.text import print_program
from tilewright.ir.tensor.verify import verify_program


def tensor(name: str, *shape: Expr | int) -> Tensor:
    return Tensor(name, F32, tuple(as_expr(d) for d in shape))


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


M, N, K = (Var(v) for v in "MNK")


def test_matmul(golden):
    program = einstein("C[i,j] += A[i,k] * B[k,j]", tensor("A", M, K), tensor("B", K, N))
    verify_program(program)
    golden(print_program(program))
    a, b = random(3, 4), random(4, 5)
    np.testing.assert_allclose(run_program(program, {"A": a, "B": b})["C"], a @ b, rtol=1e-5)


def test_the_range_of_a_window(golden):
    text = "Y[n, o, y, x] += X[n, c, 2 * y + r, x + s + 1] * W[o, c, r, s]"
    program = einstein(text, tensor("X", 1, 2, 9, N), tensor("W", 3, 2, 3, 2), name="conv")
    verify_program(program)
    golden(print_program(program))
    x, w = random(1, 2, 9, 7), random(3, 2, 3, 2)
    windows = np.lib.stride_tricks.sliding_window_view(x[..., 1:], (3, 2), (2, 3))[:, :, ::2]
    expected = np.einsum("ncyxrs,ocrs->noyx", windows, w)
    np.testing.assert_allclose(run_program(program, {"X": x, "W": w})["Y"], expected, rtol=1e-4)


def test_several_stages_and_other_reductions():
    text = """
        M[i] max= X[i, j]
        E[i, j] = exp(X[i, j] - M[i]);  S[i] += E[i, j]
        Y[i, j] = E[i, j] / S[i]"""
    program = einstein(text, tensor("X", 3, 4))
    verify_program(program)
    x = random(3, 4)
    e = np.exp(x - x.max(1, keepdims=True))
    expected = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(run_program(program, {"X": x})["Y"], expected, rtol=1e-6)


def test_sizes_are_not_summed_over():
    program = einstein("Y[i] += X[i, j] * f32(N)", tensor("X", 3, N))
    result = run_program(program, {"X": np.ones((3, 4), np.float32)})["Y"]
    assert result.tolist() == [16, 16, 16]


def test_ranges_can_be_given():
    with pytest.raises(TypeCheckError, match="no range can be found for j"):
        einstein("Y[i, j] = X[i]", tensor("X", 3))
    program = einstein("Y[i, j] = X[i]", tensor("X", 3), extents={"j": 2})
    assert run_program(program, {"X": random(3)})["Y"].shape == (3, 2)


@for_each(
    ("text", "error", "message"),
    [
        ("Y[i] = X[i, j]", ParseError, "j is not on the left: write \\+="),
        ("Y[i] += X[i]", TypeCheckError, "'X' has 2 dimensions"),
        ("Y[i] += X[i, k] * X[k, i]", TypeCheckError, "ranges over"),
        ("X[i] += X[i, k]", ParseError, "'X' is defined already"),
        ("Y[i] += Z[i]", ParseError, "no buffer named 'Z'"),
        ("", ParseError, "expected a name"),
    ],
)
def test_errors(text, error, message):
    with pytest.raises(error, match=message):
        einstein(text, tensor("X", 3, 4))
