"""Gradients of products over labels, of determinants and of products in special types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.gradient.check_rule import check_rule, gradient_graph, pulled_with
from tilewright.core.errors import UnsupportedError
from tilewright.ir.graph.nodes import NO_ATTRS
from tilewright.ops.linalg.dft import DftAttrs
from tilewright.ops.linalg.einsum import EinsumAttrs

RNG = np.random.default_rng(5)
X = RNG.uniform(-1, 2, (2, 3, 4))


def random(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape)


def test_matrix_products() -> None:
    check_rule("matmul", X, random(1, 4, 2))
    check_rule("matmul", X[0], random(2, 4, 2))
    check_rule("matmul", np.zeros((0, 3)), random(3, 2))


@for_each(
    "equation, shapes",
    [
        ("bij,jk->bk", [(2, 3, 4), (4, 3)]),
        ("iij->ij", [(3, 3, 2)]),
        ("...ij,...kj->...ik", [(2, 3, 4), (1, 2, 4)]),
        ("i,i->", [(4,), (4,)]),
        ("ij,jk,kl->il", [(2, 3), (3, 2), (2, 4)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    check_rule("einsum", *(random(*s) for s in shapes), attrs=EinsumAttrs(equation))


@for_each(
    "equation, shapes",
    [("iij,jk->ik", [(3, 3, 2), (1, 4)]), ("iii->i", [(3, 3, 3)]), ("ij,kj->ik", [(2, 3), (4, 3)])],
)
def test_formulas(equation: str, shapes: list[tuple[int, ...]]) -> None:
    check_rule("contract", *(random(*s) for s in shapes), attrs=EinsumAttrs(equation))


def test_determinants() -> None:
    check_rule("determinant", random(2, 3, 3))
    check_rule("determinant", random(2, 1, 1))
    singular = random(3, 3)
    singular[1] = singular[0]
    check_rule("determinant", singular)


def test_a_determinant_of_unknown_size() -> None:
    with pytest.raises(UnsupportedError, match="give the size of the matrices a value"):
        gradient_graph("determinant", (random(3, 3),), NO_ATTRS, [("N", "N")])


@for_each("op, dtype", [("matmul_f32out", ml_dtypes.bfloat16), ("matmul_f16acc", np.float16)])
def test_products_of_narrow_floats(op: str, dtype: type) -> None:
    a: np.ndarray = random(3, 4).astype(dtype)
    b: np.ndarray = random(4, 2).astype(dtype)
    da, db = pulled_with(op, NO_ATTRS, a, b)
    assert da.dtype == db.dtype == dtype
    np.testing.assert_allclose(da.astype(float), np.ones((3, 2)) @ b.T.astype(float), rtol=1e-2)
    np.testing.assert_allclose(db.astype(float), a.T.astype(float) @ np.ones((3, 2)), rtol=1e-2)


def test_fourier_transform() -> None:
    check_rule("dft", random(2, 5, 1), attrs=DftAttrs(1, 5))
    check_rule("dft", random(2, 5, 2), attrs=DftAttrs(1, 4, inverse=True))
    check_rule("dft", random(2, 6, 1), attrs=DftAttrs(1, 6, onesided=True))
