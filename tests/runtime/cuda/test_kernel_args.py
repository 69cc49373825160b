from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from tilewright.runtime.cuda.kernel_args import Arguments, TensorMapArg


def _describe(start: int, shape: Sequence[int], box: Sequence[int]) -> Any:
    return (ctypes.c_int64 * 5)(start, *shape, *box)


def _read(place: int, count: int = 1) -> list[int]:
    return list((ctypes.c_int64 * count).from_address(place))


def test_matrices_come_before_the_number_of_a_step() -> None:
    given = Arguments([100, 200, 7, 3], [TensorMapArg(1, (8, 64), (128, 64))])
    one, two, size, matrix, step = given.pointers(_describe)
    assert [*_read(one), *_read(two), *_read(size), *_read(step)] == [100, 200, 7, 3]
    assert _read(matrix, 5) == [200, 8, 64, 128, 64]


def test_they_follow_where_a_word_has_changed() -> None:
    given = Arguments([100, 0], [TensorMapArg(0, (1, 64), (64, 64))])
    asked: list[int] = []

    def describe(start: int, *about: Any) -> Any:
        asked.append(start)
        return _describe(start, *about)

    first = given.pointers(describe)
    for start in (100, 300, 300):
        given.words[0] = start
        assert given.pointers(describe) is first
        assert _read(first[1], 5)[0] == start
    assert asked == [100, 300]
