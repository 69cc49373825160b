from __future__ import annotations

import pytest
import sympy
from torch.utils._sympy.functions import FloorDiv, PythonMod

from tests.for_each import for_each
from tilewright.arith.expr import Var, const
from tilewright.core.errors import UnsupportedError
from tilewright.frontends.torch.symbolic_shapes import Sizes

S, T = sympy.symbols("s t", integer=True, positive=True)


@for_each(
    ("expr", "value"),
    [
        (2 * S + T, 13),
        (S**2 * T, 75),
        (FloorDiv(S, 2), 2),
        (PythonMod(S, 4), 1),
        (sympy.Max(S, T), 5),
        (sympy.Min(S, T + 10), 5),
        (S - T, 2),
    ],
)
def test_expressions(expr: sympy.Expr, value: int) -> None:
    found = Sizes({"s": 5, "t": 3})._expr(expr)
    from tilewright.arith.simplify import simplify

    assert simplify(found) is const(value)


def test_symbols_and_numbers() -> None:
    assert Sizes()._expr(S) is Var("s")
    assert Sizes().of(4) is const(4)
    assert Sizes().symbol(Var("n")) == "n"
    assert Sizes().symbol(4) is None


def test_what_has_no_counterpart() -> None:
    with pytest.raises(UnsupportedError, match="has no counterpart"):
        Sizes()._expr(sympy.sin(S))
    with pytest.raises(UnsupportedError, match="has no counterpart"):
        Sizes()._expr(1 / S)
