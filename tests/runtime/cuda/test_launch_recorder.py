from __future__ import annotations

import pytest

from tests.runtime.cuda.recordings import IN, OUT, A, recording
from tilewright.runtime.cuda.launch_recorder import MAX_ROWS, placed, ranges_of, uses


def test_copies_are_told() -> None:
    notes = recording((IN, OUT))
    assert not notes.copies
    notes.copy(1, 2, 3, 0)
    assert notes.copies
    with pytest.raises(AssertionError):
        notes.download(1, 2, 3, 0)


def test_rows_with_gaps_are_told_apart() -> None:
    span = ["w", [[2, 10], ["n", 100]]]
    found = ranges_of(1000, span, {"w": 4, "n": 3})
    assert found == [(s, s + 4) for s in (1000, 1100, 1200, 1010, 1110, 1210)]
    assert ranges_of(0, [8, [[MAX_ROWS + 1, 10]]], {}) == [(0, 10 * MAX_ROWS + 8)]
    assert ranges_of(0, [8, [[0, 10], [MAX_ROWS + 1, 10]]], {}) == []


def test_words_are_told_by_their_buffers() -> None:
    launches = recording((IN, A), (A, OUT)).launches
    assert uses(launches) == {0: [(0, 0, 0)], 2: [(0, 1, 0), (1, 0, 0)], 1: [(1, 1, 8)]}
    assert [placed(one, [100, 200, 1000])[:2] for one in launches] == [(100, 1000), (1000, 208)]
