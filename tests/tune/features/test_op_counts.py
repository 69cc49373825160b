from __future__ import annotations

from tilewright.arith.expr import Expr, Load, Var, call, cast, const, maximum, select
from tilewright.core.dtypes import F32, I64
from tilewright.tune.features.op_counts import operations

A, B = (Load(name, (Var("i") * 8 + 1,), F32) for name in "ab")


def _counts(e: Expr) -> dict[str, int]:
    return {kind: n for kind, n in operations(e).items() if n}


def test_kinds() -> None:
    assert _counts(A) == {}  # the arithmetic of an index is not that of the value
    assert _counts(A + B) == {"add": 1}
    assert _counts(A + A * B) == {"fma": 1}
    assert _counts(call("fma", A, A, B)) == {"fma": 1}
    assert _counts(A * B) == {"mul": 1}
    assert _counts(A / B) == {"div": 1}
    assert _counts(maximum(A, 0.0)) == {"choice": 1}
    assert _counts(select(A < B, A, B)) == {"choice": 2}
    assert _counts(call("sqrt", A)) == {"root": 1}
    assert _counts(call("exp", A - B)) == {"add": 1, "math": 1}
    assert _counts(cast(F32, Load("n", (), I64) + const(1))) == {"cast": 1, "int": 1}


def test_what_occurs_twice_counts_once() -> None:
    e = call("exp", A)
    assert _counts(e * e) == {"mul": 1, "math": 1}
    assert _counts(e * B + e) == {"fma": 1, "math": 1}
