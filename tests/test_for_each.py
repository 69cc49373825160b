from __future__ import annotations

import inspect

import pytest

from tests.for_each import for_each


def test_every_value_is_tried_with_the_fixtures() -> None:
    tried = []

    @for_each("a", [1, 2])
    @for_each(("b", "c"), [(3, 4), (5, 6)])
    def test(path: str, a: int, b: int, c: int) -> None:
        tried.append((path, a, b, c))

    assert list(inspect.signature(test).parameters) == ["path"]
    test(path="p")
    assert tried == [("p", 1, 3, 4), ("p", 1, 5, 6), ("p", 2, 3, 4), ("p", 2, 5, 6)]


def test_a_failure_names_its_case() -> None:
    @for_each("size, name", [(1, "x"), (2, "y")])
    def test(size: int, name: str) -> None:
        assert size == 1

    with pytest.raises(AssertionError) as caught:
        test()
    assert caught.value.__notes__ == ["in the case size=2, name='y'"]


def test_all_failures_are_told() -> None:
    @for_each("size", [1, 2, 3], ids=["one", "two", "three"])
    def test(size: int) -> None:
        if size == 3:
            pytest.fail("no")
        assert size == 1

    with pytest.raises(BaseExceptionGroup, match="2 of 3 cases failed") as caught:
        test()
    notes = [error.__notes__ for error in caught.value.exceptions]
    assert notes == [["in the case two"], ["in the case three"]]


def test_a_case_that_skips_is_no_success() -> None:
    @for_each("size", [1, 2], ids=str)
    def test(size: int) -> None:
        pytest.skip("not here")

    with pytest.raises(AssertionError, match="1 skips"):
        test()


def test_no_values_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="no values of a"):
        for_each("a", [])
