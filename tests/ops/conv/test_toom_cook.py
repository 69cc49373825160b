"""The transforms of short convolutions: exact on fractions, and written with few operations."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from tests.for_each import for_each
from tilewright.arith.expr import Binary, Const, Expr, Var
from tilewright.core.dtypes import F32
from tilewright.ops.conv.toom_cook import (
    POINTS,
    Matrix,
    additions,
    combine,
    transforms,
)

SHAPES = [
    (1, 1),
    (1, 2),
    (2, 2),
    (1, 3),
    *((m, 3) for m in range(2, 7)),
    (4, 5),
    (3, 5),
    (6, 5),
    (2, 7),
    (4, 7),
]


def _times(matrix: Matrix, values: list[Fraction]) -> list[Fraction]:
    return [sum((a * v for a, v in zip(row, values, strict=True)), Fraction(0)) for row in matrix]


@for_each(("tile", "window"), SHAPES)
def test_together_they_are_a_convolution_exactly(tile: int, window: int) -> None:
    rng = np.random.default_rng(tile)
    x = [Fraction(int(v)) for v in rng.integers(-9, 9, tile + window - 1)]
    w = [Fraction(int(v)) for v in rng.integers(-9, 9, window)]
    t = transforms(tile, window)
    products = [a * b for a, b in zip(_times(t.filters, w), _times(t.inputs, x), strict=True)]
    expected = [sum(x[i + k] * w[k] for k in range(window)) for i in range(tile)]
    assert _times(t.outputs, products) == expected


@for_each(("tile", "window"), SHAPES)
def test_what_runs_is_exact_in_f32(tile: int, window: int) -> None:
    t = transforms(tile, window)
    for x in (x for matrix in (t.inputs, t.outputs) for row in matrix for x in row):
        assert Fraction(float(np.float32(float(x)))) == x


def _value(e: Expr, values: dict[str, Fraction]) -> Fraction:
    if isinstance(e, Const):
        return Fraction(e.value)
    if isinstance(e, Var):
        return values[e.name]
    assert isinstance(e, Binary)
    a, b = _value(e.a, values), _value(e.b, values)
    return a + b if e.op == "add" else a - b if e.op == "sub" else a * b


@for_each(("tile", "window"), SHAPES)
def test_combined_sums_are_the_matrix_product(tile: int, window: int) -> None:
    t = transforms(tile, window)
    for matrix in (t.inputs, t.outputs):
        places = [Var(f"v{n}", F32) for n in range(len(matrix[0]))]
        values = {v.name: Fraction(3 * n + 1, n + 2) for n, v in enumerate(places)}
        found = [_value(e, values) for e in combine(matrix, places)]
        assert found == _times(matrix, list(values.values()))


def test_symmetric_points_share_their_arithmetic() -> None:
    t = transforms(4, 3)
    for matrix, most in ((t.inputs, 12), (t.outputs, 10)):
        assert additions(matrix) <= most < sum(x != 0 for row in matrix for x in row)
    assert additions(transforms(2, 3).inputs) == 4


def test_errors_grow_with_the_tile() -> None:
    errors = [transforms(tile, 3).amplification for tile in (1, 2, 3, 4, 5, 6)]
    assert sorted(errors[1:]) == errors[1:]
    assert errors[1] < 1.3
    assert errors[3] < 3


def test_points_are_distinct() -> None:
    for count, points in POINTS.items():
        assert len(set(points)) == len(points) == count
