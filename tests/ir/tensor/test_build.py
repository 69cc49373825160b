from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Var
from tilewright.core.dtypes import F32
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.interp import run_program
from tilewright.ir.tensor.text import print_program
from tilewright.ir.tensor.verify import verify_program

M, N, K = (Var(v) for v in "MNK")


def test_matmul_with_index_lambdas():
    b = Builder("matmul")
    x, w = b.input("x", F32, (M, K)), b.input("w", F32, (K, N))
    y = b.compute("y", (M, N), lambda i, j: b.sum((K,), lambda r: x[i, r] * w[r, j]))
    program = b.program(y)
    verify_program(program)
    line = "  y: f32[M, N] = [i0, i1] sum(r0 in K) (x[i0, r0] * w[r0, i1])"
    assert line in print_program(program)
    arrays = {"x": np.eye(3, 4, dtype=np.float32), "w": np.ones((4, 2), np.float32)}
    np.testing.assert_array_equal(run_program(program, arrays)["y"], np.ones((3, 2)))


def test_names_are_made_unique():
    b = Builder("f")
    x = b.input("x", F32, (3,))
    first = b.compute("t", (3,), lambda i: x[i] * 2.0)
    second = b.compute("t", (3,), lambda i: x[i] * 3.0)
    assert (first.name, second.name) == ("t", "t_1")
    verify_program(b.program(first, second))


def test_stages_are_called_by_their_scope():
    b = Builder("f")
    x = b.input("x", F32, (3,))
    b.scope = "relu"
    t = b.compute("t", (3,), lambda i: x[i] * 2.0)
    y = b.compute("y", (3,), lambda i: t[i] + 1.0)
    assert (t.name, y.name) == ("relu.t", "relu")


def test_axes_are_not_called_like_sizes() -> None:
    b = Builder("sums")
    x = b.input("x", F32, (Var("i0"), Var("r0")))
    y = b.compute("y", (Var("i0"),), lambda i: b.sum((Var("r0"),), lambda r: x[i, r]))
    given = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = run_program(b.program(y), {"x": given}, {"i0": 2, "r0": 3})
    np.testing.assert_array_equal(found["y"], given.sum(1))
