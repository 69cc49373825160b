from __future__ import annotations

import numpy as np

from tilewright.arith.expr import Expr, const
from tilewright.core.dtypes import F32, F64
from tilewright.ir.tensor.build import Builder
from tilewright.ir.tensor.interp import run_program
from tilewright.ops.elementwise.special.series import (
    double,
    from_nearest,
    is_fraction,
    is_whole,
    polynomial,
    real,
)


def value(x: Expr) -> float:
    """Of an expression without variables."""
    b = Builder("value")
    found = run_program(b.program(b.compute("y", (1,), lambda i: x)), {})
    return float(found["y"][0])


def test_powers_have_the_highest_first() -> None:
    assert value(polynomial((2.0, 3.0, 5.0), real(10))) == 235


def test_parts_of_numbers() -> None:
    assert value(from_nearest(real(2.75))) == -0.25
    assert [bool(value(is_whole(real(x)))) for x in (-3, 0.5)] == [True, False]
    assert [bool(value(is_fraction(real(x)))) for x in (-3, 0.5)] == [False, True]


def test_formulas_are_computed_in_f64() -> None:
    third = double(lambda _, x: x / real(3) * real(3) - x)
    found = third(None, const(1.0, F32))
    assert found.dtype == F32
    assert value(found) == np.float64(1) / 3 * 3 - 1
    assert real(1).dtype == F64
