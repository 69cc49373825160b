from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.for_each import for_each
from tilewright.driver.gc_tuning import COMPILING_THRESHOLDS, relaxed_gc


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def test_searches_are_rare_in_the_block_only() -> None:
    gc.set_threshold(700, 10, 10)
    with relaxed_gc():
        assert gc.get_threshold() == COMPILING_THRESHOLDS
    assert gc.get_threshold() == (700, 10, 10)


@for_each("threshold", [(0, 10, 10), (1_000_000, 5, 5)])
def test_a_program_that_searches_less_is_left_alone(threshold: tuple[int, int, int]) -> None:
    gc.set_threshold(*threshold)
    with relaxed_gc():
        assert gc.get_threshold() == threshold


def test_an_error_restores_what_was() -> None:
    gc.set_threshold(700, 10, 10)

    def fail() -> None:
        with relaxed_gc():
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert gc.get_threshold() == (700, 10, 10)
