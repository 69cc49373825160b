from __future__ import annotations

from tilewright.arith.expr import Broadcast, Load, Var, const
from tilewright.arith.text import parse_expr, print_expr
from tilewright.arith.vector import Lane, Ramp, Shuffle
from tilewright.core.dtypes import F32, I64

INDEX = Var("i")


def test_lanes_and_dtypes() -> None:
    ramp = Ramp(INDEX, 2, 8)
    assert (ramp.lanes, ramp.dtype) == (8, I64)
    vector = Load("a", (ramp,), F32)
    assert vector.lanes == 8
    assert (Lane(vector, 3).lanes, Lane(vector, 3).dtype) == (1, F32)
    halves = Shuffle(vector, vector, (0, 8, 1, 9))
    assert (halves.lanes, halves.dtype) == (4, F32)
    assert Broadcast(const(1.0, F32), 4).lanes == 4


def test_text_round_trip() -> None:
    for e in (
        Ramp(INDEX + 1, -1, 4),
        Broadcast(INDEX, 2),
        Lane(Load("a", (Ramp(INDEX, 1, 4),), F32), 2),
        Shuffle(Broadcast(INDEX, 2), Ramp(INDEX, 1, 2), (3, 0, 1)),
    ):
        assert parse_expr(print_expr(e), {"a": F32}) is e
