from __future__ import annotations

from tests.for_each import for_each
from tilewright.arith.expr import Expr, Load, Var, const, maximum, minimum, select
from tilewright.core.dtypes import I64
from tilewright.tune.features.index_footprint import ANYWHERE, IndexFootprint, footprint, of_loop

A, B, N = Var("i"), Var("j"), Var("N")
ENV = {"i": of_loop(0, 2, 8), "j": of_loop(1, 2, 4)}


def _footprint(e: Expr) -> IndexFootprint:
    return footprint(e, ENV, {})


@for_each(
    ("e", "expected"),
    [
        (const(5), IndexFootprint(5)),
        (N + 1, IndexFootprint(65)),
        (A, IndexFootprint(0, (7, 0, 0), (8, 1, 1), (1, 0))),
        (A * 4 + B, IndexFootprint(0, (31, 3, 0), (32, 4, 1), (4, 1))),
        (A * 2 + B - 1, IndexFootprint(-1, (17, 3, 0), (18, 4, 1), (2, 1))),
        (A * 16 + B, IndexFootprint(0, (115, 3, 0), (32, 4, 1), (16, 1))),  # with holes
        (3 - B, IndexFootprint(3, (3, 3, 0), (4, 4, 1), (0, -1))),
        ((A * 4 + B) // 4, IndexFootprint(0, (7, 0, 0), (8, 1, 1), (1, 0))),
        ((A * 4 + B) % 4, IndexFootprint(0, (3, 3, 0), (4, 4, 1), (0, 1))),
        (minimum(A, 5), IndexFootprint(0, (5, 0, 0), (6, 1, 1), (1, 0))),
        (maximum(A - 1, 0), IndexFootprint(0, (7, 0, 0), (8, 1, 1), (1, 0))),
        (A * N, IndexFootprint(0, (448, 0, 0), (8, 1, 1), (64, 0))),
        (select(A < 3, B, 0), IndexFootprint(0, (3, 3, 0), (4, 4, 1), (0, 1))),
    ],
)
def test_motion(e: Expr, expected: IndexFootprint) -> None:
    assert _footprint(e) == expected


def test_what_depends_on_data_may_be_anywhere() -> None:
    found = _footprint(Load("table", (B,), I64) + 1)
    assert found.width == (ANYWHERE, ANYWHERE, 0)
    assert found.values == (4, 4, 1)
    assert found.step == (0, ANYWHERE)
    assert _footprint(Load("table", (N,), I64)).width == ()
    assert _footprint(A * B).width[0] == ANYWHERE


def test_the_greatest_value() -> None:
    assert _footprint(A * 4 + B + 1).greatest == 32
    assert _footprint(N).greatest == 64
