from __future__ import annotations

import pytest

from tilewright.arith.expr import Expr, Load, Var, const, maximum, minimum, select
from tilewright.core.dtypes import I64
from tilewright.tune.features.index_footprint import ANYWHERE, Reach, of_loop, reach

A, B, N = Var("i"), Var("j"), Var("N")
ENV = {"i": of_loop(0, 2, 8), "j": of_loop(1, 2, 4)}


def _reach(e: Expr) -> Reach:
    return reach(e, ENV, {})


@pytest.mark.parametrize(
    ("e", "expected"),
    [
        (const(5), Reach(5)),
        (N + 1, Reach(65)),
        (A, Reach(0, (7, 0, 0), (8, 1, 1), (1, 0))),
        (A * 4 + B, Reach(0, (31, 3, 0), (32, 4, 1), (4, 1))),
        (A * 2 + B - 1, Reach(-1, (17, 3, 0), (18, 4, 1), (2, 1))),
        (A * 16 + B, Reach(0, (115, 3, 0), (32, 4, 1), (16, 1))),  # with holes
        (3 - B, Reach(3, (3, 3, 0), (4, 4, 1), (0, -1))),
        ((A * 4 + B) // 4, Reach(0, (7, 0, 0), (8, 1, 1), (1, 0))),
        ((A * 4 + B) % 4, Reach(0, (3, 3, 0), (4, 4, 1), (0, 1))),
        (minimum(A, 5), Reach(0, (5, 0, 0), (6, 1, 1), (1, 0))),
        (maximum(A - 1, 0), Reach(0, (7, 0, 0), (8, 1, 1), (1, 0))),
        (A * N, Reach(0, (448, 0, 0), (8, 1, 1), (64, 0))),
        (select(A < 3, B, 0), Reach(0, (3, 3, 0), (4, 4, 1), (0, 1))),
    ],
)
def test_motion(e: Expr, expected: Reach) -> None:
    assert _reach(e) == expected


def test_what_depends_on_data_may_be_anywhere() -> None:
    found = _reach(Load("table", (B,), I64) + 1)
    assert found.width == (ANYWHERE, ANYWHERE, 0)
    assert found.values == (4, 4, 1)
    assert found.step == (0, ANYWHERE)
    assert _reach(Load("table", (N,), I64)).width == ()
    assert _reach(A * B).width[0] == ANYWHERE


def test_the_greatest_value() -> None:
    assert _reach(A * 4 + B + 1).greatest == 32
    assert _reach(N).greatest == 64
