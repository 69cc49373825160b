from __future__ import annotations

from tilewright.arith.expr import Var, ceildiv, const
from tilewright.schedule.facts import is_below

M, i, j = Var("M"), Var("i"), Var("j")


def test_is_below() -> None:
    assert is_below(i, M, {"i": M})
    assert not is_below(i + 1, M, {"i": M})
    assert is_below(i * 8 + j, M * 8, {"i": M, "j": const(8)})
    assert not is_below(i * 8 + j, M, {"i": ceildiv(M, 8), "j": const(8)})


def test_rounded_sizes_cancel_as_a_whole() -> None:
    padded = ceildiv(M, 8) * 8
    assert is_below(i, padded, {"i": padded})
    assert is_below(i * 8 + j, padded, {"i": ceildiv(M, 8), "j": const(8)})
