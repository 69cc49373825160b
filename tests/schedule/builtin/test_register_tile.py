from __future__ import annotations

from itertools import product

import pytest

from tilewright.schedule.builtin.register_tile import TileProblem, choose_tile, nearest_divisor
from tilewright.target.cpu import NAMED


@pytest.mark.parametrize("name", NAMED)
def test_the_tile_fits_the_registers(name: str) -> None:
    target = NAMED[name]
    for rows, columns, steps in product((1, 3, 64), (1, 7, 64, 1000), (0, 1, 512)):
        for bits, shared, period in product((16, 32, 64), (True, False), (0, 14)):
            problem = TileProblem(rows, columns, steps, bits, shared, period)
            tile = choose_tile(problem, target)
            assert tile.lanes == target.lanes(bits)
            assert tile.columns % tile.lanes == 0
            assert 1 <= tile.rows <= rows
            assert tile.rows * tile.columns // tile.lanes < target.vector_registers


def test_large_products_keep_the_units_busy() -> None:
    tile = choose_tile(TileProblem(1024, 1024, 1024, 32, True), NAMED["x86-64-v4"])
    assert tile.rows * tile.columns // tile.lanes >= 16


@pytest.mark.parametrize(("name", "sums"), [("x86-64-v3", 12), ("x86-64-v4", 24)])
def test_few_registers_are_left_over(name: str, sums: int) -> None:
    for rows in (96, 196, 1024):
        tile = choose_tile(TileProblem(rows, 768, 768, 32, True), NAMED[name])
        assert tile.rows * tile.columns // tile.lanes >= sums


@pytest.mark.parametrize("rows", [49, 196, 197, 784])
def test_few_rows_are_computed_for_nothing(rows: int) -> None:
    """The pixels of small images, and those and one more, on a machine with many registers."""
    tile = choose_tile(TileProblem(rows, 768, 768, 32, True), NAMED["x86-64-v4"])
    assert -rows % tile.rows <= 0.03 * rows


def test_columns_that_need_no_padding_get_none() -> None:
    for columns in (16, 24, 40):
        tile = choose_tile(TileProblem(50, columns, 9, 32, False), NAMED["x86-64-v3"])
        assert columns % tile.columns == 0


@pytest.mark.parametrize("name", NAMED)
def test_rows_of_unknown_number(name: str) -> None:
    """A tile that is good at many numbers of rows, with few copies of the code."""
    target = NAMED[name]
    by_lane = target.multiplies_by_lane
    problem = TileProblem(64, 768, 768, 32, True, by_lane=by_lane, unknown=True)
    tile = choose_tile(problem, target)
    vectors = tile.columns // tile.lanes
    assert 4 <= tile.rows <= 8
    assert vectors >= 2
    assert tile.rows * vectors + vectors < target.vector_registers


@pytest.mark.parametrize(("number", "wanted", "found"), [(12, 5, 6), (7, 3, 7), (1 << 40, 48, 64)])
def test_nearest_divisor(number: int, wanted: int, found: int) -> None:
    assert nearest_divisor(number, wanted) == found
