from __future__ import annotations

import numpy as np
import pytest

from tests.for_each import for_each
from tests.ops.run_op import run_op
from tilewright.arith.expr import Var, as_int
from tilewright.core.dtypes import F32
from tilewright.core.errors import TypeCheckError
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.ops.linalg.einsum import EinsumAttrs, parse_equation
from tilewright.ops.registry import get_op

RNG = np.random.default_rng(9)

CASES = [
    ("ij->ji", (3, 4)),
    ("ij", (3, 4)),
    ("ba", (3, 4)),
    ("i->", (5,)),
    ("ii->i", (4, 4)),
    ("ii", (4, 4)),
    ("iji->j", (3, 4, 3)),
    ("...ii->...i", (2, 3, 3)),
    ("...->...", (2, 3)),
    ("...i->i...", (2, 3, 4)),
    ("ij,jk->ik", (3, 4), (4, 5)),
    ("ij,jk", (3, 4), (4, 5)),
    ("ij,kj->ki", (3, 4), (5, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)),
    ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)),
    ("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5)),
    ("i,i->", (5,), (5,)),
    ("i,j->ij", (3,), (4,)),
    ("i,j->ji", (3,), (4,)),
    ("bi,bj->bij", (2, 3), (2, 4)),
    ("ij,ij->ij", (3, 4), (3, 4)),
    ("ij,ji->ij", (3, 4), (4, 3)),
    ("bi,bi->b", (2, 5), (2, 5)),
    ("ijk,jil->kl", (3, 4, 2), (4, 3, 5)),
    ("ij,jk->i", (3, 4), (4, 5)),
    ("iij,jk->ik", (3, 3, 4), (4, 5)),
    ("...ij,...jk->...ik", (2, 1, 3, 4), (5, 4, 2)),
    ("...ij,jk->...ik", (2, 6, 3, 4), (4, 5)),
    ("...ij,...jk", (2, 3, 4), (4, 5)),
    ("i...,...i->...", (3, 2), (2, 3)),
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
    ("ij,jk,kl,lm->mi", (2, 3), (3, 4), (4, 5), (5, 2)),
    ("i,i,i->i", (4,), (4,), (4,)),
    ("i,ij,j->", (3,), (3, 4), (4,)),
    ("a,b,c->cab", (2,), (3,), (4,)),
    (" i j , j k -> i k ", (3, 4), (4, 5)),
    ("iJ,Jk->ik", (3, 4), (4, 5)),
    (",ij->ij", (), (3, 4)),
    ("ij,jk->ik", (3, 0), (0, 5)),
]


@for_each("case", CASES, ids=[c[0] + str(i) for i, c in enumerate(CASES)])
def test_against_numpy(case: tuple) -> None:
    equation, *shapes = case
    arrays = [RNG.standard_normal(s) for s in shapes]
    expected = np.einsum(equation, *arrays)
    for op in ("einsum", "contract"):
        found = run_op(op, *arrays, attrs=EinsumAttrs(equation))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_sizes_of_one_broadcast() -> None:
    a, b = RNG.standard_normal((2, 1, 3)), RNG.standard_normal((1, 4, 3))
    attrs = EinsumAttrs("abk,abk->ab")
    expected = (a * b).sum(-1)
    np.testing.assert_allclose(run_op("einsum", a, b, attrs=attrs), expected)
    scaled = run_op("einsum", a[:, :, 0], b[..., 0], attrs=EinsumAttrs("ab,ab->ab"))
    np.testing.assert_allclose(scaled, a[:, :, 0] * b[..., 0])


def test_symbolic_sizes() -> None:
    a, b = RNG.standard_normal((2, 3, 4, 5)), RNG.standard_normal((2, 3, 6, 5))
    found = run_op(
        "einsum",
        a,
        b,
        attrs=EinsumAttrs("bhqd,bhkd->bqhk"),
        dims=[("B", 3, "Q", 5), ("B", 3, "K", 5)],
    )
    np.testing.assert_allclose(found, np.einsum("bhqd,bhkd->bqhk", a, b))


def decomposed(equation: str, *shapes: tuple[int, ...]) -> list[str]:
    g = GraphBuilder("test")
    inputs = [g.input(f"x{i}", tensor(F32, *s)) for i, s in enumerate(shapes)]
    get_op("einsum").decompose(g, EinsumAttrs(equation), inputs)
    return [n.op for n in g.nodes]


def test_contractions_of_two_are_matrix_products() -> None:
    assert decomposed("ij,jk->ik", (3, 4), (4, 5)) == ["matmul"]
    assert decomposed("bhqk,bhkd->bhqd", (2, 3, 4, 5), (2, 3, 5, 6)) == ["matmul"]
    assert decomposed("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)) == ["transpose", "matmul"]
    assert decomposed("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)) == ["matmul", "matmul"]
    assert decomposed("ij,ij->ij", (3, 4), (3, 4)) == ["mul"]
    assert "contract" not in decomposed("bqhd,bkhd->bhqk", (2, 4, 3, 5), (2, 6, 3, 5))


def test_parse_equation() -> None:
    shapes = [tensor(F32, Var("N"), 3, 4).shape, tensor(F32, 4, 5).shape]
    parsed = parse_equation("...ij,jk", shapes)
    assert parsed.operands == ("0ij", "jk")
    assert parsed.output == "0ik"
    assert parsed.shape == tensor(F32, Var("N"), 3, 5).shape


def test_cost() -> None:
    row, attrs = get_op("einsum"), EinsumAttrs("ij,jk->ik")
    ins = [tensor(F32, 3, 4), tensor(F32, 4, 5)]
    assert as_int(row.cost(attrs, ins, [tensor(F32, 3, 5)])) == 2 * 3 * 4 * 5


@for_each(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->ik", [(3, 4)], "2 operands, 1"),
        ("ij->ik", [(3, 4)], "new one"),
        ("ij->ii", [(3, 4)], "repeats"),
        ("ijk->i", [(3, 4)], "does not fit"),
        ("i->i", [(3, 4)], "does not fit"),
        ("i?->i", [(3, 4)], "not an equation"),
        ("....i->i", [(3, 4)], "not an equation"),
        ("ij,jk->ik", [(3, 4), (5, 6)], "sizes 4 and 5"),
        ("ii->i", [(3, 4)], "sizes 3 and 4"),
    ],
)
def test_refusals(equation: str, shapes: list[tuple[int, ...]], message: str) -> None:
    with pytest.raises(TypeCheckError, match=message):
        get_op("einsum").infer(EinsumAttrs(equation), [tensor(F32, *s) for s in shapes])
