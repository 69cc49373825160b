from __future__ import annotations

from tilewright.arith.expr import Var, ceildiv, const, minimum
from tilewright.schedule.facts import is_below

M, i, j = Var("M"), Var("i"), Var("j")


def test_is_below() -> None:
    assert is_below(i, M, {"i": M})
    assert not is_below(i + 1, M, {"i": M})
    assert is_below(i * 8 + j, M * 8, {"i": M, "j": const(8)})
    assert not is_below(i * 8 + j, M, {"i": ceildiv(M, 8), "j": const(8)})


def test_a_limit_that_depends_on_other_loops() -> None:
    left = minimum(4, ceildiv(M - j * 64, 16))
    extents = {"i": left, "k": const(16), "j": ceildiv(M, 64)}
    assert is_below(i * 16 + Var("k"), left * 16, extents)
    assert not is_below(i * 16 + Var("k") + 1, left * 16, extents)


def test_rounded_sizes_cancel_as_a_whole() -> None:
    padded = ceildiv(M, 8) * 8
    assert is_below(i, padded, {"i": padded})
    assert is_below(i * 8 + j, padded, {"i": ceildiv(M, 8), "j": const(8)})
