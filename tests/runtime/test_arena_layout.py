from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tilewright.runtime.arena_layout import arena_layout, first_fit


def test_known_sizes_are_laid_out_already() -> None:
    assert arena_layout(640, {}) == ({}, 640)


@given(st.lists(st.tuples(st.integers(0, 500), st.booleans()), max_size=12))
def test_conflicting_buffers_never_overlap(drawn: list[tuple[int, bool]]) -> None:
    sizes = [size for size, _ in drawn]
    conflicts = [[j for j in range(i) if drawn[j][1] or keep] for i, (_, keep) in enumerate(drawn)]
    names = [f"offset.{i}" for i in range(len(drawn))]
    offsets, total = arena_layout({"sizes": sizes, "names": names, "conflicts": conflicts}, {})
    for i, others in enumerate(conflicts):
        a = offsets[names[i]]
        assert a + sizes[i] <= total
        for j in others:
            b = offsets[names[j]]
            assert a + sizes[i] <= b or b + sizes[j] <= a or 0 in (sizes[i], sizes[j])


def test_without_conflicts_one_behind_the_other() -> None:
    arena = {"sizes": ["N", 5, 7], "names": ["a", "b", "c"], "conflicts": None}
    assert arena_layout(arena, {"N": 3}) == ({"a": 0, "b": 3, "c": 8}, 15)


def test_a_buffer_takes_the_lowest_gap_that_is_wide_enough() -> None:
    # The third lies beside the first two; the last finds room for itself below the second only.
    assert first_fit([64, 32, 16, 64], [[], [0], [0, 1], [1]]) == [0, 64, 96, 0]
