from __future__ import annotations

from tests.for_each import for_each
from tilewright.driver.bisect.search import first_wrong


@for_each("count", [1, 2, 7, 64])
def test_every_place_is_found_in_few_questions(count: int) -> None:
    for first in range(count):
        asked: list[int] = []

        def is_wrong(version: int, first: int = first, asked: list[int] = asked) -> bool:
            asked.append(version)
            return version >= first

        assert first_wrong(count, is_wrong) == (first - 1, first)
        assert len(asked) <= count.bit_length()


def test_versions_of_which_nothing_is_known_lie_between() -> None:
    verdicts = {4: None, 5: None}
    assert first_wrong(10, lambda v: verdicts.get(v, v >= 6)) == (3, 6)
    assert first_wrong(10, lambda v: None) == (-1, 9)
