from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.run_node import check_node, imported, run_node
from tilewright.core.errors import Error

RNG = np.random.default_rng(20)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@for_each("opset", [8, 9, 13, 21])
@for_each(
    ("x", "w"),
    [
        ((3, 4), (4, 5)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((2, 3, 4), (4,)),
        ((4,), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
    ],
)
def test_matmul(opset: int, x: tuple[int, ...], w: tuple[int, ...]) -> None:
    check_node("MatMul", [normal(*x), normal(*w)], opset=opset)


def test_matrices_stay_one_operator() -> None:
    graph = imported("MatMul", [normal(3, 4), normal(4, 5)])
    assert [n.op for n in graph.nodes] == ["matmul"]


@for_each("trans_a", [0, 1])
@for_each("trans_b", [0, 1])
@for_each("bias", [None, (), (1,), (5,), (3, 1), (3, 5)])
@for_each("opset", [7, 11, 13])
def test_gemm(trans_a: int, trans_b: int, bias: tuple[int, ...] | None, opset: int) -> None:
    if bias is None and opset < 11:
        return  # an input that was required then
    a = normal(*((4, 3) if trans_a else (3, 4)))
    b = normal(*((5, 4) if trans_b else (4, 5)))
    c = [] if bias is None else [normal(*bias)]
    check_node(
        "Gemm", [a, b, *c], opset=opset, transA=trans_a, transB=trans_b, alpha=0.5, beta=-2.0
    )


def test_gemm_leaves_out_what_does_nothing() -> None:
    graph = imported("Gemm", [normal(3, 4), normal(4, 5), normal(5)], alpha=1.0, beta=1.0)
    assert [n.op for n in graph.nodes] == ["matmul", "add"]
    graph = imported("Gemm", [normal(3, 4), normal(4, 5)], beta=2.0)
    assert [n.op for n in graph.nodes] == ["matmul"]


def test_symbolic_batch() -> None:
    x, w = normal(3, 4), normal(4, 5)
    found = run_node("MatMul", [x, w], constants=[1], dims={0: ("batch", 4)})
    np.testing.assert_allclose(found[0], x @ w, rtol=1e-5, atol=1e-6)


@for_each("equation", ["bij,bjk->bik", "...ij,...kj->...ik", "ii,ij->j", "ij,jk"])
def test_einsum(equation: str) -> None:
    shapes = {
        "bij,bjk->bik": [(2, 3, 4), (2, 4, 5)],
        "...ij,...kj->...ik": [(2, 3, 4), (2, 5, 4)],
        "ii,ij->j": [(3, 3), (3, 4)],
        "ij,jk": [(3, 4), (4, 2)],
    }
    check_node("Einsum", [normal(*s) for s in shapes[equation]], equation=equation)


def test_refusals() -> None:
    with pytest.raises(Error, match="scalars"):
        imported("MatMul", [normal(), normal(3)])
    with pytest.raises(Error, match="inner dimensions"):
        imported("MatMul", [normal(3, 4), normal(3, 4)])
    with pytest.raises(Error, match="equation is missing"):
        imported("Einsum", [normal(3, 4)])


def test_determinant() -> None:
    x = np.random.default_rng(1).standard_normal((3, 4, 4)).astype("f4")
    np.testing.assert_allclose(run_node("Det", [x])[0], np.linalg.det(x), rtol=1e-4)
