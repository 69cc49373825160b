from __future__ import annotations

from tilewright.arith.expr import Var, const
from tilewright.core.dtypes import F32
from tilewright.ir.graph.nodes import Check
from tilewright.ir.types import tensor
from tilewright.ops.shape.dim_equalities import DimEqualities
from tilewright.ops.tensor.manipulation import ReshapeAttrs

D, N, M = Var("D"), Var("N"), Var("M")


def test_quotients_are_written_by_the_coarsest() -> None:
    u = (D + 31) // 32
    equal = DimEqualities(
        [Check(((D + 15) // 16).eq(u * 2), ""), Check(((D + 7) // 8).eq((D + 15) // 16 * 2), "")]
    )
    assert equal.expr((D + 15) // 16) is u * 2
    assert equal.expr((D + 7) // 8) is u * 4
    assert equal.expr((D + 7) // 8 * 3 + D) is not None
    assert equal.of(tensor(F32, (D + 7) // 8, 3)) == tensor(F32, u * 4, 3)
    assert equal.of(ReshapeAttrs(((D + 15) // 16, D))) == ReshapeAttrs((u * 2, D))


def test_numbers_and_names() -> None:
    equal = DimEqualities([Check(((D + 320) // 512).eq(1), ""), Check(N.eq(M), "")])
    assert equal.expr((D + 320) // 512) is const(1)
    assert equal.expr(N) is equal.expr(M)


def test_nothing_is_said_of_sizes_that_are_not_known_yet() -> None:
    late = Var("_late_0")
    equal = DimEqualities([Check(late.eq(2), ""), Check(N.eq(M), "")])
    assert equal.before(["_late_1"]) is equal
    before = equal.before(["_late_0"])
    assert before.expr(late) is late
    assert before.expr(N) is before.expr(M)
    assert equal.expr(late) is const(2)


def test_what_says_nothing_of_one_size_is_left() -> None:
    equal = DimEqualities([Check((N * 2).eq(M * 3), ""), Check(N < 513, "")])
    assert equal.expr(N * 2) is N * 2
    t = tensor(F32, N, M)
    assert equal.of(t) is t


def test_a_size_is_not_written_by_itself() -> None:
    equal = DimEqualities([Check(N.eq(const(2) // N * N), ""), Check(M.eq(M // 2 * 2), "")])
    assert (equal.expr(N), equal.expr(M)) == (N, M)
